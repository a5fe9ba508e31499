// The Metal kernels' table against the library, and MLX's groups at both levels of the emulator's
// checks. tests/kernels holds all kernels to the contract.
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "metal/emulator/executor.h"
#include "metal/kernel.h"
#include "unit/check.h"
#include "unit/half.h"

namespace akunu::test {
namespace {

namespace emulator = metal::emulator;
using emulator::Level;

// --- The table ----------------------------------------------------------------------------------

uint32_t weights_of(Operation operation) {
  uint32_t n = 0;
  for (const OperandInfo& operand : operation_info(operation).operands)
    n += operand.kind == OperandKind::weight;
  return n;
}

void check_kernel(const metal::Kernel& kernel, Operation operation) {
  const OperationInfo& info = operation_info(operation);
  check(kernel.operation == operation && !kernel.launches.empty(), info.name);
  for (const metal::Launch& launch : kernel.launches) {
    const emulator::Function* function = emulator::find_function(launch.function);
    check(function != nullptr, "the library has " + launch.function);
    if (function == nullptr) continue;
    for (const emulator::Argument& argument : arguments_of(*function)) {
      if (argument.kind != emulator::Argument::Kind::buffer) continue;
      const bool is_operand = argument.index < info.operands.size();
      // Slots of a sister operation, there under the condition that they are bound.
      const bool is_sisters = launch.function.starts_with("matvec_group") ||
                              launch.function.starts_with("attention_") ||
                              launch.function.starts_with("rope_kv_write");
      check(is_operand || argument.index >= kFirstPlaneSlot || is_sisters,
            launch.function + " takes slots of " + std::string(info.name));
      if (is_operand && info.operands[argument.index].access == Access::in)
        check(argument.is_read_only,
              launch.function + " only reads what is in: " + std::string(argument.name));
      if (argument.index == kSlotWorkspace)
        check(kernel.workspace_bytes != nullptr, launch.function + " has a workspace");
    }
    for (const metal::FunctionConstant& constant : launch.constants) {
      bool found = false;
      for (const emulator::FunctionConstantInfo& known : constants_of(*function))
        found |= known.index == constant.index && known.is_bool == constant.is_bool;
      check(found, launch.function + " has the constant " + std::to_string(constant.index));
    }
  }
}

void set_head_dim(KernelRequest& request, uint32_t head_dim) {
  AttentionParams attention{};
  RopeAttentionParams rope_attention{};
  CrossAttentionParams cross_attention{};
  attention.head_dim = rope_attention.head_dim = cross_attention.head_dim = head_dim;
  if (request.operation == Operation::cross_attention) request.params.set(cross_attention);
  if (request.operation == Operation::attention) request.params.set(attention);
  if (request.operation == Operation::rope_attention) request.params.set(rope_attention);
}

void test_heads_choose_the_kernel() {
  for (const Operation operation : {Operation::attention, Operation::rope_attention})
    for (const RowClass row_class : {RowClass::single, RowClass::many}) {
      if (operation == Operation::rope_attention && row_class == RowClass::many) continue;
      KernelRequest request;
      request.operation = operation;
      request.row_class = row_class;
      std::set<std::string> functions;
      const bool has_own_keys = operation == Operation::rope_attention;
      const uint32_t most = has_own_keys ? 256 : 512;
      for (const uint32_t head_dim : {32u, 64u, 80u, 128u, 129u, 256u, 257u, 512u}) {
        if (head_dim > most) continue;
        set_head_dim(request, head_dim);
        const auto kernel = metal::find_kernel(request);
        if (kernel) check_kernel(*kernel, operation);
        if (kernel) functions.insert(kernel->launches.front().function);
      }
      // Heads up to 64, 128, 256 and 512; tiles of prompts up to 128, 256 and 512.
      check(functions.size() == (row_class == RowClass::many || has_own_keys ? 3u : 4u),
            "a kernel per size of head");
      set_head_dim(request, most + 1);
      check(!metal::find_kernel(request), "larger heads have none");
      check(metal::unsupported_shape(request) == "head_dim is " + std::to_string(most + 1) +
                                                     ", the most here is " + std::to_string(most),
            "and are named");
    }
}

void test_the_table_names_what_is_there() {
  for (uint32_t i = 0; i < kOperationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    const uint32_t n_weights = weights_of(operation);
    for (const RowClass row_class : {RowClass::single, RowClass::few, RowClass::many}) {
      for (const Format cache : {Format::f16, Format::f32}) {
        for (uint32_t number = 0; number < kFormatCount; ++number) {
          const auto format = static_cast<Format>(number);
          for (const Format last : {format, Format::q6_k}) {
            KernelRequest request;
            request.operation = operation;
            request.row_class = row_class;
            request.cache = cache;
            set_head_dim(request, 64);
            for (uint32_t w = 0; w < n_weights; ++w) request.weights[w] = format;
            if (n_weights > 0) request.weights[n_weights - 1] = last;
            const auto kernel = metal::find_kernel(request);
            // Gate and up fold the norm in as well, and rope_kv_write is part of attention, or nothing.
            if (operation == Operation::all_reduce || operation == Operation::all_reduce_add) {
              check(!kernel, "there is one GPU");
              continue;
            }
            if (operation == Operation::gated_matmul ||
                operation == Operation::matmul_rope_kv_write) {
              check(!kernel, std::string(operation_info(operation).name) + " is left to the CPU");
              continue;
            }
            // What convolutions and scans keep is F32, whatever keys are.
            const bool keeps_floats = operation == Operation::short_convolution ||
                                      operation == Operation::causal_convolution ||
                                      operation == Operation::selective_scan ||
                                      operation == Operation::gated_delta_rule;
            if (keeps_floats && cache != Format::f32) {
              check(!kernel, "inputs of convolutions and states are in F32");
              continue;
            }
            // Tables of positions, matrices of adapters and what latent attention absorbs are never in
            // blocks.
            const bool is_of_floats =
                operation == Operation::add_embedding || operation == Operation::adapter_down ||
                operation == Operation::adapter_up || operation == Operation::latent_query ||
                operation == Operation::latent_value;
            if (is_of_floats && last != Format::f32 && last != Format::f16 &&
                last != Format::bf16) {
              check(!kernel,
                    std::string(operation_info(operation).name) + " takes floats as its weight");
              continue;
            }
            // Prompts go without what pays for single rows only.
            const bool is_fused = operation == Operation::norm_matmul_group ||
                                  operation == Operation::norm_gated_matmul ||
                                  operation == Operation::rope_attention;
            check(kernel.has_value() != (is_fused && row_class == RowClass::many),
                  operation_info(operation).name);
            if (kernel) check_kernel(*kernel, operation);
            request.activation = ActivationKind::q8_32;
            check(!metal::find_kernel(request), "activations are float32");
          }
        }
      }
    }
  }
}

// --- MLX ----------------------------------------------------------------------------------------

struct MlxWeight {
  uint32_t n, k, bits, group;
  std::vector<uint8_t> codes;
  std::vector<uint16_t> scales, biases;
  std::vector<double> values;     // [n, k]
  std::vector<double> magnitude;  // |scale * code| + |bias|
};

MlxWeight random_mlx(uint32_t n, uint32_t k, uint32_t bits, uint32_t group, std::mt19937& random) {
  MlxWeight weight{n, k, bits, group, {}, {}, {}, {}, {}};
  const uint64_t code_bytes = uint64_t{n} * k / 8 * bits, n_groups = uint64_t{n} * k / group;
  std::vector<uint8_t> codes(code_bytes);
  std::vector<uint16_t> scales(n_groups), biases(n_groups);
  for (uint8_t& byte : codes) byte = static_cast<uint8_t>(random());
  // Exponents of 2^-9 to 2^-2, both signs; some groups are 0.
  const auto half = [&] {
    return static_cast<uint16_t>((random() & 0x83ff) | (6 + random() % 8) << 10);
  };
  for (uint16_t& scale : scales) scale = random() % 16 == 0 ? uint16_t{0} : half();
  for (uint16_t& bias : biases) bias = half();
  for (uint64_t i = 0; i < uint64_t{n} * k; ++i) {
    uint32_t code = 0;
    for (uint64_t bit = 0; bit < bits; ++bit)
      code |= (codes[(i * bits + bit) / 8] >> (i * bits + bit) % 8 & 1u) << bit;
    const double product = half_value(scales[i / group]) * code;
    weight.values.push_back(product + half_value(biases[i / group]));
    weight.magnitude.push_back(std::abs(product) + std::abs(half_value(biases[i / group])));
  }
  weight.codes = std::move(codes);
  weight.scales = std::move(scales);
  weight.biases = std::move(biases);
  return weight;
}

template <class T>
emulator::BoundBuffer buffer_of(std::vector<T>& data, std::string_view label) {
  return {reinterpret_cast<std::byte*>(data.data()), data.size() * sizeof(T), 0, label};
}
template <class T>
emulator::BoundBuffer buffer_of_one(T& value, std::string_view label) {
  return {reinterpret_cast<std::byte*>(&value), sizeof(T), 0, label};
}

emulator::Launch launch_of(const std::string& name) {
  emulator::Launch launch;
  launch.function = emulator::find_function(name);
  check(launch.function != nullptr, name);
  launch.label = name_of(*launch.function);
  return launch;
}

// The weight's planes, at the slots of a command's first one.
void bind_planes(emulator::Launch& launch, MlxWeight& weight) {
  launch.buffers[1] = buffer_of(weight.codes, "codes");
  launch.buffers[plane_slot(0, 1)] = buffer_of(weight.scales, "scales");
  launch.buffers[plane_slot(0, 2)] = buffer_of(weight.biases, "biases");
}
constexpr uint32_t kBound = 7u | 1u << plane_slot(0, 1) | 1u << plane_slot(0, 2);

// With every slot of the matmul bound, and nothing accumulated.
void run(emulator::Launch launch, uint32_t group, Level level) {
  constexpr uint32_t kMlxGroup = 7;  // kernels/formats_mlx.h
  std::vector<emulator::ConstantValue> constants;
  for (const emulator::FunctionConstantInfo& constant : constants_of(*launch.function))
    constants.push_back({constant.index, constant.index == metal::kConstantBoundSlots ? kBound
                                         : constant.index == kMlxGroup                ? group
                                                                                      : 0u});
  launch.constants = constants;
  const std::string message = message_of<emulator::EmulatorError>([&] {
    emulator::Executor executor(level);
    executor.run(launch);
  });
  check(message.empty(), message);
}

// `launch` has its grid; the rest is bound here.
void check_matmul(emulator::Launch launch, MlxWeight& weight, uint32_t n_rows, Level level,
                  std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> input(uint64_t{n_rows} * weight.k), out(uint64_t{n_rows} * weight.n, NAN);
  for (float& x : input) x = normal(random);
  alignas(16) PassRange pass{0, n_rows, 0, 0};
  alignas(16) MatmulParams params{weight.n, weight.k, {}};
  launch.buffers[0] = buffer_of(input, "input");
  bind_planes(launch, weight);
  launch.buffers[2] = buffer_of(out, "out");
  launch.buffers[kSlotPass] = buffer_of_one(pass, "pass");
  launch.buffers[kSlotParams] = buffer_of_one(params, "params");
  run(launch, weight.group, level);
  const double roundings = weight.k / 8.0 + 8;
  bool is_within = true;
  for (uint32_t r = 0; r < n_rows; ++r)
    for (uint32_t j = 0; j < weight.n; ++j) {
      double exact = 0, magnitude = 0;
      for (uint32_t i = 0; i < weight.k; ++i) {
        const double x = input[uint64_t{r} * weight.k + i];
        exact += weight.values[uint64_t{j} * weight.k + i] * x;
        magnitude += weight.magnitude[uint64_t{j} * weight.k + i] * std::abs(x);
      }
      const double error = std::abs(out[uint64_t{r} * weight.n + j] - exact);
      is_within &= error <= roundings * 0x1p-24 / (1 - roundings * 0x1p-24) * magnitude;
    }
  check(is_within, std::string(launch.label) + " is within the bound of matmul");
}

// Every weight as float32, rounded once.
void check_embed(MlxWeight& weight, const std::string& name, Level level) {
  emulator::Launch launch = launch_of("embed_" + name);
  launch.threadgroups = {(weight.k + 511) / 512, weight.n, 1};
  launch.threads = {32, 1, 1};
  std::vector<uint32_t> tokens(weight.n);
  std::vector<Row> rows(weight.n);
  for (uint32_t r = 0; r < weight.n; ++r) {
    tokens[r] = weight.n - 1 - r;
    rows[r].position = r;
  }
  std::vector<float> out(weight.values.size(), NAN);
  alignas(16) PassRange pass{0, weight.n, 0, 0};
  alignas(16) EmbedParams params{weight.k, weight.n, weight.n, 1.0f, 0, {}};
  std::vector<Status> statuses(weight.n);
  launch.buffers[0] = buffer_of(tokens, "tokens");
  bind_planes(launch, weight);
  launch.buffers[2] = buffer_of(out, "out");
  launch.buffers[kSlotPass] = buffer_of_one(pass, "pass");
  launch.buffers[kSlotParams] = buffer_of_one(params, "params");
  launch.buffers[kSlotRows] = buffer_of(rows, "rows");
  launch.buffers[kSlotStatuses] = buffer_of(statuses, "statuses");
  run(launch, weight.group, level);
  bool is_same = true;
  for (uint32_t r = 0; r < weight.n; ++r)
    for (uint32_t i = 0; i < weight.k; ++i)
      is_same &= out[uint64_t{r} * weight.k + i] ==
                 static_cast<float>(weight.values[uint64_t{tokens[r]} * weight.k + i]);
  check(is_same, name + " gives the weights");
}

void test_mlx_formats() {
  std::mt19937 random(5);
  for (const uint32_t bits : {2u, 3u, 4u, 5u, 6u, 8u}) {
    const std::string name = "mlx" + std::to_string(bits);
    for (const Level level : {Level::plain, Level::checked})
      for (const uint32_t group : {32u, 64u, 128u}) {
        const uint32_t k = group == 32 ? 96 : 9 * group;
        MlxWeight weight = random_mlx(11, k, bits, group, random);
        emulator::Launch one = launch_of("matvec_" + name + "_r1");
        one.threadgroups = {2, 1, 1};
        one.threads = {64, 1, 1};
        check_matmul(one, weight, 1, level, random);
        emulator::Launch several = launch_of("matvec_" + name + "_r4");
        several.threadgroups = {3, 1, 1};
        several.threads = {128, 1, 1};  // two quads of rows, two blocks of outputs
        check_matmul(several, weight, 6, level, random);
        emulator::Launch tiles = launch_of("gemm_" + name);
        tiles.threadgroups = {1, 2, 1};
        tiles.threads = {128, 1, 1};
        tiles.threadgroup_bytes[0] = 128 * 36 * 4;
        check_matmul(tiles, weight, 70, level, random);
        check_embed(weight, name, level);
      }
  }
}

// --- Bytes --------------------------------------------------------------------------------------

// Runs the launches that a kernel of the table has for so many rows, as the device would.
void run_launches(emulator::Executor& executor, const metal::Kernel& kernel,
                  const emulator::Launch& bound, uint32_t bound_slots, uint32_t n_rows) {
  const metal::Scope scope{bound.buffers[kSlotParams].contents, n_rows, 1};
  std::vector<std::byte> workspace(kernel.workspace_bytes ? kernel.workspace_bytes(scope.params, 1)
                                                          : 0);
  for (const metal::Launch& launch : kernel.launches) {
    if (launch.min_rows > n_rows || launch.max_rows < n_rows) continue;
    emulator::Launch now = bound;
    now.function = emulator::find_function(launch.function);
    now.label = launch.function;
    std::vector<emulator::ConstantValue> constants;
    for (const metal::FunctionConstant& constant : launch.constants)
      constants.push_back({constant.index, constant.value});
    for (const emulator::FunctionConstantInfo& constant : constants_of(*now.function))
      if (constant.index == metal::kConstantBoundSlots)
        constants.push_back({constant.index, bound_slots});
    now.constants = constants;
    const metal::Grid grid = launch.grid(scope);
    now.threadgroups = grid.threadgroups;
    now.threads = grid.threads;
    std::copy(grid.threadgroup_bytes.begin(), grid.threadgroup_bytes.end(),
              now.threadgroup_bytes.begin());
    if (!workspace.empty()) now.buffers[kSlotWorkspace] = buffer_of(workspace, "workspace");
    executor.run(now);
    executor.end_stage();
  }
}

// No more than 3 % more than there are, each once.
void check_bytes(uint64_t read, uint64_t there, const std::string& what) {
  check(read >= there && read <= there * 103 / 100,
        what + ": " + std::to_string(read) + " bytes read of " + std::to_string(there));
}

void test_weights_are_read_once_for_up_to_16_rows() {
  constexpr uint32_t n = 96, k = 1024;
  alignas(16) MatmulParams params{n, k, {}};
  for (const uint32_t n_rows : {1u, 4u, 16u})
    for (uint32_t number = 0; number < kFormatCount; ++number) {
      const auto format = static_cast<Format>(number);
      std::vector<float> input(n_rows * k, 1.0f), out(n_rows * n);
      alignas(16) PassRange pass{0, n_rows, 0, 1};
      std::vector<std::byte> weight(n * plane_row_bytes(format, 0, k));
      emulator::Launch bound;
      uint32_t bound_slots = 7;
      std::array<std::vector<std::byte>, kMaxPlanes> more;
      for (uint32_t plane = 1; plane < format_info(format).n_planes; ++plane) {
        more[plane].resize(n * plane_row_bytes(format, plane, k));
        bound.buffers[plane_slot(0, plane)] = buffer_of(more[plane], "plane");
        bound_slots |= 1u << plane_slot(0, plane);
      }
      bound.buffers[0] = buffer_of(input, "input");
      bound.buffers[1] = buffer_of(weight, "weight");
      bound.buffers[2] = buffer_of(out, "out");
      bound.buffers[kSlotPass] = buffer_of_one(pass, "pass");
      bound.buffers[kSlotParams] = buffer_of_one(params, "params");
      KernelRequest request;
      request.operation = Operation::matmul;
      request.row_class = n_rows == 1 ? RowClass::single : RowClass::few;
      request.weights[0] = format;
      const metal::Kernel kernel = metal::find_kernel(request).value();
      emulator::Executor executor(Level::checked);
      run_launches(executor, kernel, bound, bound_slots, n_rows);
      check_bytes(executor.bytes_read(1), weight.size(),
                  std::string(format_info(format).name) + ", " + std::to_string(n_rows) + " rows");
    }
}

// A dense layer of one row, its weights in one format, or with v in another as Q4_K_M has it.
void test_a_layer_is_six_launches(Format of_v) {
  RopeAttentionParams attention{};
  attention.n_heads = 8;
  attention.n_kv_heads = 2;
  attention.head_dim = 64;
  uint32_t n_launches = 0;
  for (const Operation operation :
       {Operation::norm_matmul_group, Operation::rope_attention, Operation::matmul_add,
        Operation::norm_gated_matmul, Operation::matmul_add}) {
    KernelRequest request;
    request.operation = operation;
    for (uint32_t w = 0; w < weights_of(operation); ++w)
      request.weights[w] = w == 2 ? of_v : Format::q4_k;
    if (operation == Operation::rope_attention) request.params.set(attention);
    const metal::Kernel kernel = metal::find_kernel(request).value();
    for (const metal::Launch& launch : kernel.launches) n_launches += launch.min_rows <= 1;
  }
  check(n_launches == 6, std::to_string(n_launches) + " launches of a layer");
}

void test_one_row_reads_keys_and_values_once() {
  constexpr uint32_t n_heads = 8, n_kv_heads = 2, head_dim = 64, kv_length = 700, n_pages = 3;
  std::vector<float> query(n_heads * head_dim, 0.5f), out(n_heads * head_dim);
  std::vector<std::byte> keys(n_pages * n_kv_heads * kPagePositions * head_dim * 2), values = keys;
  std::vector<uint32_t> pages{2, 0, 1};
  std::vector<Row> rows(1);
  rows[0].position = kv_length - 1;
  rows[0].kv_length = kv_length;
  rows[0].flags = kRowActive;
  std::vector<Span> spans{{0, 0, 1, 0}};
  alignas(16) PassRange pass{0, 1, 0, 1};
  alignas(16) AttentionParams params{n_heads, n_kv_heads, head_dim, 0, 0.125f, 0, n_pages, 0};
  emulator::Launch bound;
  bound.buffers[0] = buffer_of(query, "query");
  bound.buffers[1] = buffer_of(keys, "keys");
  bound.buffers[2] = buffer_of(values, "values");
  bound.buffers[3] = buffer_of(out, "out");
  bound.buffers[kSlotPass] = buffer_of_one(pass, "pass");
  bound.buffers[kSlotParams] = buffer_of_one(params, "params");
  bound.buffers[kSlotRows] = buffer_of(rows, "rows");
  bound.buffers[kSlotPages] = buffer_of(pages, "pages");
  bound.buffers[kSlotSpans] = buffer_of(spans, "spans");
  KernelRequest request;
  request.operation = Operation::attention;
  request.params.set(params);
  emulator::Executor executor(Level::checked);
  run_launches(executor, metal::find_kernel(request).value(), bound, 15, 1);
  constexpr uint64_t there = uint64_t{kv_length} * n_kv_heads * head_dim * 2;
  check_bytes(executor.bytes_read(1), there, "keys");
  check_bytes(executor.bytes_read(2), there, "values");
}

}  // namespace
}  // namespace akunu::test

int main() {
  akunu::test::test_the_table_names_what_is_there();
  akunu::test::test_heads_choose_the_kernel();
  akunu::test::test_mlx_formats();
  akunu::test::test_a_layer_is_six_launches(akunu::Format::q4_k);
  akunu::test::test_a_layer_is_six_launches(akunu::Format::q6_k);
  akunu::test::test_weights_are_read_once_for_up_to_16_rows();
  akunu::test::test_one_row_reads_keys_and_values_once();
  return akunu::test::summary();
}
