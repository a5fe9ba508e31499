// Every kernel at every instruction set level of this build that this CPU has, on the same random
// operands. What a level may differ in is whether a multiply_add rounds once: all with an FMA must
// give the same bits, those of the first of them. That these are right, tests/kernels shows, which
// holds each level, and `generic`, to derived bounds. Where only this driver can run, in an emulator
// of another processor, the level they are compared with is `fused` (isa_fused.h): `generic` with an
// FMA, compiled for that.
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/format.h"
#include "core/kernel_params.h"
#include "cpu/isa_level.h"
#include "unit/check.h"
#include "unit/random_operands.h"

namespace akunu::cpu {
struct Fused;
template <>
bool find_kernel<Fused>(const KernelKey& request, Kernel& kernel);
}  // namespace akunu::cpu

namespace {

using namespace akunu;
using namespace akunu::cpu;
using namespace akunu::test;

// The level that others are compared with: `fused` where this build has it, else the first level with
// FMA that this processor runs. Null where it runs none.
template <bool kHasFused>
const IsaLevel* find_reference() {
  if constexpr (kHasFused) {
    static const IsaLevel fused{.name = "fused",
                                .needs = "nothing",
                                .is_available = [] { return true; },
                                .prompts_with_halves = ActivationKind::q16_32,
                                .find = find_kernel<Fused>};
    return &fused;
  }
  for (const IsaLevel& level : isa_levels())
    if (level.name != "generic" && level.can_run()) return &level;
  return nullptr;
}

const IsaLevel& reference() {
  static const IsaLevel* const level = find_reference<AKUNU_HAS_Fused>();
  return *level;
}

// Two conversations: a run of five rows from position 250 on, over a page's end, and one row.
constexpr uint32_t kLogStride = 512, kPageTableStride = 2, kRunRows = 5;
constexpr uint32_t kStepRows = kRunRows + 1, kHeadRows = 2;

struct Step {
  std::vector<Row> rows;
  std::vector<Span> spans{{0, 0, kRunRows, 0}, {1, kRunRows, 1, 0}};
  std::vector<uint32_t> pages{2, 0, 1, 3};
  std::vector<SequenceRecord> sequences;

  Step() {
    for (uint32_t r = 0; r < kStepRows; ++r) {
      const bool is_run = r < kRunRows;
      const uint32_t position = is_run ? 253 + r : 300;
      rows.push_back({.sequence = is_run ? 0u : 1u,
                      .position = position,
                      .kv_length = position + 1,
                      .draw = r,
                      .flags = kRowActive | kRowChained | kRowScored | (is_run ? 0 : kRowMasked),
                      .head_row = r + 1 < kRunRows ? kNone : r - kRunRows + 1,
                      .span = is_run ? 0u : 1u,
                      .adapter = kNone,
                      .last_position = 400,
                      .second_segment = kNone,
                      .pool = kPoolOwn,
                      .rope_offsets = {},
                      .reserved = {}});
    }
    for (uint32_t s = 0; s < 2; ++s) {
      SequenceRecord record{};
      record.sampling.seed_low = 5 + s;
      record.sampling.temperature = s == 0 ? 0.0f : 0.8f;
      record.sampling.top_k = s == 0 ? 0 : 40;
      record.sampling.top_p = s == 0 ? 1.0f : 0.9f;
      record.sampling.min_p = s == 0 ? 0.0f : 0.02f;
      record.sampling.repetition_penalty = s == 0 ? 1.0f : 1.2f;
      record.sampling.frequency_penalty = s == 0 ? 0.0f : 0.1f;
      record.sampling.presence_penalty = s == 0 ? 0.0f : 0.2f;
      record.sampling.penalty_window = 64;
      record.n_logprobs = s == 0 ? kMaxLogprobs : 3;
      if (s == 1) record.biases = {6, 2};
      sequences.push_back(record);
    }
  }
};

int32_t number(Format format) { return static_cast<int32_t>(format); }
int32_t number(ActivationKind kind) { return static_cast<int32_t>(kind); }

struct Case {
  std::string name;
  KernelKey key;
  std::vector<std::byte> params;
  std::map<uint32_t, Bytes> operands;  // by slot
  // Of Kernel::l1_panel_bytes: what is asked for, and in which halves, says nothing about results.
  std::vector<uint64_t> l1_panel_sizes = {0};
  uint32_t n_rows = kStepRows;
  uint32_t n_spans = 0;
  std::optional<Sampling> sampling = std::nullopt;  // of the first conversation

  template <class Params>
  void set_params(const Params& value) {
    params.resize(sizeof(value));
    std::memcpy(params.data(), &value, sizeof(value));
  }
};

// All operands after the run, then the rows. Slices are run in two parts, the later ones first.
std::vector<Bytes> run(const IsaLevel& level, const Case& the_case, uint64_t l1_panel_bytes) {
  Kernel kernel{};
  std::vector<Bytes> memory;
  if (!level.find(the_case.key, kernel)) {
    check(false, the_case.name + ": no kernel at level " + std::string(level.name));
    return memory;
  }
  kernel.l1_panel_bytes = l1_panel_bytes;
  Step step;
  if (the_case.sampling) step.sequences[0].sampling = *the_case.sampling;
  while (step.rows.size() < the_case.n_rows) step.rows.push_back(step.rows.back());
  std::vector<Status> statuses(step.rows.size());
  Call call{};
  memory.reserve(the_case.operands.size() + 1);
  for (const auto& [slot, bytes] : the_case.operands) {
    memory.push_back(bytes);
    call.operands[slot] = memory.back().data();
  }
  call.kernel = &kernel;
  call.params = the_case.params.data();
  call.rows = step.rows.data();
  call.spans = step.spans.data();
  call.pages = step.pages.data();
  call.sequences = step.sequences.data();
  call.statuses = statuses.data();
  call.n_rows = the_case.n_rows;
  call.n_spans = the_case.n_spans;
  Bytes scratch(kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call));
  const uint64_t n = kernel.slices(call);
  check(n > 0, the_case.name + ": has slices");
  kernel.run(call, n / 2, n, scratch.data());
  kernel.run(call, 0, n / 2, scratch.data());
  for (const Status& status : statuses)
    check(status.code == kStatusOk, the_case.name + ": status " + std::to_string(status.code));
  const auto row_bytes = std::as_bytes(std::span(step.rows));
  Bytes rows(row_bytes.size());
  std::ranges::copy(row_bytes, rows.data());
  memory.push_back(rows);
  return memory;
}

// A matmul or an attention of floats in whole numbers, which not every level has.
bool is_int16(const KernelKey& key) {
  return key.query == number(ActivationKind::q16_32) ||
         (key.activation == number(ActivationKind::q16_32) &&
          (key.weights[0] == number(Format::f16) || key.weights[0] == number(Format::bf16)));
}

bool has_int16(const IsaLevel& level) {
  return level.prompts_with_halves == ActivationKind::q16_32;
}

void compare(const Case& the_case) {
  if (is_int16(the_case.key) && !has_int16(reference())) return;
  const std::vector<Bytes> expected = run(reference(), the_case, 0);
  bool wrote = false;
  auto before = the_case.operands.begin();
  for (size_t i = 0; i < the_case.operands.size(); ++i, ++before)
    wrote |= std::memcmp(before->second.data(), expected[i].data(), expected[i].size()) != 0;
  check(wrote || the_case.key.operation == Operation::advance,
        the_case.name + ": writes something");
  for (const IsaLevel& level : isa_levels()) {
    if (level.name == "generic" || level.name == reference().name || !level.can_run()) continue;
    // There a matrix unit does it, which tests/kernels holds to bounds.
    const bool has_tiles = level.prompts_with_blocks == ActivationKind::bf16;
    if (has_tiles && the_case.key.operation == Operation::attention &&
        (the_case.key.activation == number(ActivationKind::bf16) ||
         the_case.key.activation == number(ActivationKind::bf16_pair)))
      continue;
    if (is_int16(the_case.key) && !has_int16(level)) continue;
    for (const uint64_t panel : the_case.l1_panel_sizes) {
      const std::vector<Bytes> found = run(level, the_case, panel);
      for (size_t i = 0; i < expected.size() && i < found.size(); ++i) {
        const bool equal =
            std::memcmp(found[i].data(), expected[i].data(), expected[i].size()) == 0;
        size_t first = 0;
        while (!equal && found[i].data()[first] == expected[i].data()[first]) ++first;
        check(equal, the_case.name + " at level " + std::string(level.name) + ", panels to " +
                         std::to_string(panel) + " bytes: operand " + std::to_string(i) +
                         " differs from byte " + std::to_string(first) + " on");
      }
    }
  }
}

// Those of one plane.
const std::vector<Format>& all_formats() {
  static const std::vector<Format> formats = [] {
    std::vector<Format> found;
    for (uint32_t number = 0; number < kFormatCount; ++number)
      if (const auto format = static_cast<Format>(number); format_info(format).n_planes == 1)
        found.push_back(format);
    return found;
  }();
  return formats;
}

// A length of rows that fits the format, and is a multiple of no more than it has to be.
uint32_t odd_length(Format format) {
  const uint32_t block = format_info(format).block_size;
  return block == 1 ? 77 : 3 * block;
}

ActivationKind kind_of(Format format) {
  return format_info(format).block_size == 1 ? ActivationKind::f32 : ActivationKind::q8_32;
}

void embeddings() {
  for (const Format format : all_formats()) {
    const uint32_t dim = odd_length(format), vocab_size = 50;
    Case c{"embed " + std::string(format_info(format).name), {Operation::embed}, {}, {}};
    c.key.weights[0] = number(format);
    c.set_params(EmbedParams{dim, vocab_size, kLogStride, 1.5f, 0, {}});
    Bytes log(4 * 2 * kLogStride);
    for (uint32_t i = 0; i < 2 * kLogStride; ++i)
      log.as<uint32_t>()[i] = static_cast<uint32_t>(random_bits()) % vocab_size;
    c.operands.emplace(0, log);
    c.operands.emplace(1, weights(format, vocab_size, dim));
    c.operands.emplace(2, Bytes(4 * kStepRows * dim));
    compare(c);
  }
}

void matmuls() {
  for (const Format format : all_formats())
    for (const Operation operation : {Operation::matmul, Operation::matmul_add})
      for (const uint32_t rows : {1u, 2u, 7u, 37u, 67u})  // the last: three more than a slice takes
        for (const uint32_t n : {1u, 37u}) {
          const uint32_t k = odd_length(format);
          const ActivationKind kind = kind_of(format);
          Case c{std::string(operation_info(operation).name) + " " +
                     std::string(format_info(format).name) + " of " + std::to_string(rows) +
                     " rows, n = " + std::to_string(n),
                 {operation, number(kind)},
                 {},
                 {}};
          c.key.weights[0] = number(format);
          c.set_params(MatmulParams{n, k, {}});
          c.l1_panel_sizes = {0, 8 * row_bytes(format, k), UINT64_MAX};  // 8: half of avx512's
          c.operands.emplace(0, activation(kind, rows, k));
          c.operands.emplace(1, weights(format, n, k));
          c.operands.emplace(2, floats(uint64_t{rows} * n));
          c.n_rows = rows;
          compare(c);
        }
}

// Halves of every size, subnormal ones and zeros among them.
void int16_matmuls() {
  for (const Format format : {Format::f16, Format::bf16})
    for (const uint32_t rows : {1u, 4u, 5u, 18u, 259u})
      for (const uint32_t n : {1u, 53u})
        for (const uint32_t k : {32u, 77u}) {
          const ActivationKind kind = ActivationKind::q16_32;
          Case c{"matmul " + std::string(format_info(format).name) + " in q16_32 of " +
                     std::to_string(rows) + " rows, n = " + std::to_string(n) +
                     ", k = " + std::to_string(k),
                 {Operation::matmul, number(kind)},
                 {},
                 {}};
          c.key.weights[0] = number(format);
          c.set_params(MatmulParams{n, k, {}});
          c.operands.emplace(0, activation(kind, rows, k));
          Bytes weight(uint64_t{2} * n * k);
          for (uint64_t i = 0; i < uint64_t{n} * k; ++i) {
            const auto bits = static_cast<uint32_t>(random_bits());
            const uint32_t exponent = format == Format::f16 ? bits % 31 : bits % 60 + 90;
            const uint32_t mantissa_bits = format == Format::f16 ? 10 : 7;
            weight.as<uint16_t>()[i] =
                static_cast<uint16_t>(random_bits() % 2 << 15 | exponent << mantissa_bits |
                                      random_bits() % (1u << mantissa_bits));
          }
          c.operands.emplace(1, weight);
          c.operands.emplace(2, floats(uint64_t{rows} * n));
          c.n_rows = rows;
          compare(c);
        }
}

// Weights whose codes, scales and biases lie in separate planes. A panel loads eight scales at a time,
// also where a row has fewer.
void plane_matmuls() {
  for (uint32_t index = 0; index < kFormatCount; ++index) {
    const auto format = static_cast<Format>(index);
    const FormatInfo& info = format_info(format);
    if (info.n_planes == 1) continue;
    for (const uint32_t rows : {1u, 2u, 7u, 67u})
      for (const uint32_t n : {1u, 37u})
        for (const uint32_t k : {info.block_size, 11 * info.block_size}) {
          const ActivationKind kind = ActivationKind::q16_32;
          Case c{"matmul " + std::string(info.name) + " of " + std::to_string(rows) +
                     " rows, n = " + std::to_string(n) + ", k = " + std::to_string(k),
                 {Operation::matmul, number(kind)},
                 {},
                 {}};
          c.key.weights[0] = number(format);
          c.set_params(MatmulParams{n, k, {}});
          c.l1_panel_sizes = {0, UINT64_MAX};
          c.operands.emplace(0, activation(kind, rows, k));
          uint32_t slot = 1;
          for (const Bytes& plane : planes(format, n, k)) {
            c.operands.emplace(slot, plane);
            slot = slot == 1 ? plane_slot(0, 1) : slot + 1;
          }
          c.operands.emplace(2, floats(uint64_t{rows} * n));
          c.n_rows = rows;
          compare(c);
        }
  }
}

void matmul_groups() {
  const Format groups[][3] = {{Format::q4_k, Format::q6_k, Format::q8_0},
                              {Format::f16, Format::f32, Format::bf16}};
  for (const auto& formats : groups)
    for (const uint32_t rows : {1u, 19u}) {
      const uint32_t k = 512;
      const ActivationKind kind = kind_of(formats[0]);
      Case c{"matmul_group of " + std::to_string(rows) + " rows",
             {Operation::matmul_group, number(kind)},
             {},
             {}};
      MatmulGroupParams params{k, {21, 40, 5}};
      c.operands.emplace(0, activation(kind, rows, k));
      for (uint32_t i = 0; i < 3; ++i) {
        c.key.weights[i] = number(formats[i]);
        c.operands.emplace(1 + i, weights(formats[i], params.n[i], k));
        if (i != 1) c.operands.emplace(4 + i, floats(params.n[i]));
        c.operands.emplace(7 + i, Bytes(uint64_t{4} * rows * params.n[i]));
      }
      c.set_params(params);
      c.n_rows = rows;
      compare(c);
    }
}

void gated_matmuls() {
  for (const Format format : all_formats())
    for (const uint32_t rows : {1u, 19u}) {
      const uint32_t k = odd_length(format), n = 416;  // several slices, two of them run at once
      const ActivationKind kind = kind_of(format);
      Case c{"gated_matmul " + std::string(format_info(format).name) + " of " +
                 std::to_string(rows) + " rows",
             {Operation::gated_matmul, number(kind)},
             {},
             {}};
      for (const uint32_t i : {0u, 1u}) {
        c.key.weights[i] = number(format);
        c.operands.emplace(1 + i, weights(format, n, k));
      }
      c.operands.emplace(0, activation(kind, rows, k));
      c.operands.emplace(3, Bytes(rows * activation_bytes(kind, n)));
      c.set_params(GatedMatmulParams{k, n, kActivationSilu, 0});
      c.l1_panel_sizes = {0, 8 * row_bytes(format, k), UINT64_MAX};
      c.n_rows = rows;
      compare(c);
    }
}

void norms() {
  for (const ActivationKind kind : kKinds) {
    const uint32_t dim = kind == ActivationKind::q8_32 ? 96 : 77;
    Case c{"rms_norm", {Operation::rms_norm, number(kind)}, {}, {}};
    c.set_params(NormParams{dim, 1e-5f, {}});
    c.operands.emplace(0, floats(uint64_t{kStepRows} * dim));
    c.operands.emplace(1, floats(dim));
    c.operands.emplace(2, Bytes(kStepRows * activation_bytes(kind, dim)));
    compare(c);
  }
  Case c{"head_norm", {Operation::head_norm}, {}, {}};
  c.set_params(HeadNormParams{3, 26, 1e-6f, 0});
  c.operands.emplace(0, floats(kStepRows * 3 * 26));
  c.operands.emplace(1, floats(26));
  compare(c);
}

void ropes() {
  Case angles{"rope_angles", {Operation::rope_angles}, {}, {}};
  angles.set_params(RopeAnglesParams{11, 0.1f, 3, 0, {}});
  angles.operands.emplace(0, floats(11, 0.0f, 1.0f));
  angles.operands.emplace(1, Bytes(4 * kStepRows * 22));
  compare(angles);
  for (const uint32_t style : {kRopeInterleaved, kRopeHalves}) {
    Case c{"rope " + std::to_string(style), {Operation::rope}, {}, {}};
    c.set_params(RopeParams{3, 26, 11, style});
    c.operands.emplace(0, floats(kStepRows * 3 * 26));
    c.operands.emplace(1, floats(kStepRows * 22, -1.0f, 1.0f));
    compare(c);
  }
}

Bytes cache(Format format, uint32_t n_kv_heads, uint32_t head_dim) {
  return weights(format, uint64_t{4} * n_kv_heads * kPagePositions, head_dim);
}

void caches() {
  const uint32_t n_heads = 6, n_kv_heads = 2, n_pairs = 9;
  for (const Format format : {Format::f32, Format::f16, Format::q8_0, Format::q4_0})
    for (const Operation operation :
         {Operation::kv_write, Operation::rope_kv_write, Operation::norm_rope_kv_write}) {
      const uint32_t head_dim = format_info(format).block_size > 1 ? 96 : 22;  // whole blocks
      Case c{
          std::string(operation_info(operation).name) + " " + std::string(format_info(format).name),
          {operation},
          {},
          {}};
      c.key.cache = number(format);
      const uint64_t kv = uint64_t{kStepRows} * n_kv_heads * head_dim;
      uint32_t slot = 0;
      if (operation != Operation::kv_write)
        c.operands.emplace(slot++, floats(uint64_t{kStepRows} * n_heads * head_dim));
      c.operands.emplace(slot++, floats(kv));
      c.operands.emplace(slot++, floats(kv));
      if (operation != Operation::kv_write)
        c.operands.emplace(slot++, floats(kStepRows * 2 * n_pairs, -1.0f, 1.0f));
      c.operands.emplace(slot++, cache(format_of_keys(format), n_kv_heads, head_dim));
      c.operands.emplace(slot++, cache(format, n_kv_heads, head_dim));
      if (operation == Operation::norm_rope_kv_write) {
        c.operands.emplace(slot++, floats(head_dim));
        c.operands.emplace(slot++, floats(head_dim));
      }
      if (operation == Operation::kv_write)
        c.set_params(KvWriteParams{n_kv_heads, head_dim, kPageTableStride, 0});
      else
        c.set_params(RopeKvWriteParams{n_heads, n_kv_heads, head_dim, n_pairs, kRopeHalves,
                                       kPageTableStride, 0, 1e-6f});
      compare(c);
    }
}

void hadamards() {
  for (const uint32_t width : {32u, 64u, 256u}) {
    Case c{"hadamard " + std::to_string(width), {Operation::hadamard}, {}, {}};
    c.key.activation = number(ActivationKind::f32);
    c.set_params(HadamardParams{2 * width, width, {}});
    c.operands.emplace(0, floats(kStepRows * 2 * width));
    c.operands.emplace(1, Bytes(sizeof(float) * kStepRows * 2 * width));
    compare(c);
  }
}

// As many pairs as no vector has, from no whole vector on.
void rotated_keys() {
  for (const Format format : {Format::f32, Format::f16, Format::q8_0})
    for (const uint32_t style : {kRopeInterleaved, kRopeHalves}) {
      const bool in_blocks = format_info(format).block_size > 1;  // whole ones
      const uint32_t head_dim = in_blocks ? 64 : 22, first = in_blocks ? 0 : 3;
      Case c{"kv_rotate " + std::string(format_info(format).name), {Operation::kv_rotate}, {}, {}};
      c.key.cache = number(format);
      c.operands.emplace(0, floats(2 * 9, -1.0f, 1.0f));
      c.operands.emplace(1, cache(format, 2, head_dim));
      c.set_params(KvRotateParams{2, head_dim, first, 9, style, kPageTableStride, 0, 0});
      compare(c);
    }
}

void matmul_rope_kv_writes() {
  const uint32_t k = 256, n_heads = 3, n_kv_heads = 1, n_pairs = 9;
  const Format groups[][3] = {{Format::q4_0, Format::q8_0, Format::q4_0},
                              {Format::q4_k, Format::q4_k, Format::q6_k},
                              {Format::f16, Format::f16, Format::f16}};
  for (const auto& formats : groups)
    for (const uint32_t head_dim : {22u, 288u}) {  // several to a slice, and wider than one
      const ActivationKind kind = kind_of(formats[0]);
      Case c{"matmul_rope_kv_write, head_dim " + std::to_string(head_dim),
             {Operation::matmul_rope_kv_write, number(kind)},
             {},
             {}};
      c.key.cache = number(Format::f16);
      c.operands.emplace(0, activation(kind, kStepRows, k));
      for (const uint32_t i : {0u, 1u, 2u}) {
        c.key.weights[i] = number(formats[i]);
        c.operands.emplace(1 + i, weights(formats[i], head_dim * (i == 0 ? n_heads : 1), k));
      }
      c.operands.emplace(5, floats(head_dim));
      c.operands.emplace(7, Bytes(uint64_t{4} * kStepRows * n_heads * head_dim));
      c.operands.emplace(8, floats(kStepRows * 2 * n_pairs, -1.0f, 1.0f));
      for (const uint32_t slot : {9u, 10u})
        c.operands.emplace(slot, cache(Format::f16, n_kv_heads, head_dim));
      for (const uint32_t slot : {11u, 12u}) c.operands.emplace(slot, floats(head_dim));
      c.set_params(MatmulRopeKvWriteParams{
          k,
          {n_heads, n_kv_heads, head_dim, n_pairs, kRopeHalves, kPageTableStride, 0, 1e-6f},
          {}});
      compare(c);
    }
}

void attentions() {
  for (const Format format : {Format::f32, Format::f16})
    for (const ActivationKind kind : kKinds)
      for (const uint32_t head_dim : {22u, 64u}) {
        const uint32_t n_heads = 8, n_kv_heads = 2;
        if (kind == ActivationKind::q8_32 && head_dim % 32 != 0) continue;
        for (const float soft_cap : {0.0f, 5.0f}) {
          Case c{"attention " + std::string(format_info(format).name) + ", head_dim " +
                     std::to_string(head_dim),
                 {Operation::attention, number(kind)},
                 {},
                 {}};
          c.key.cache = number(format);
          c.set_params(AttentionParams{n_heads, n_kv_heads, head_dim, soft_cap == 0.0f ? 0u : 270u,
                                       2.0f, soft_cap, kPageTableStride, 0});
          c.operands.emplace(0, floats(uint64_t{kStepRows} * n_heads * head_dim));
          c.operands.emplace(1, cache(format_of_keys(format), n_kv_heads, head_dim));
          c.operands.emplace(2, cache(format, n_kv_heads, head_dim));
          c.operands.emplace(3, Bytes(kStepRows * activation_bytes(kind, n_heads * head_dim)));
          c.n_spans = 2;
          compare(c);
          if (format != Format::f16 ||
              (kind != ActivationKind::q8_32 && kind != ActivationKind::q16_32))
            continue;
          c.name += ", in whole numbers";
          c.key.query = number(ActivationKind::q16_32);
          compare(c);
        }
      }
}

void elementwise() {
  for (const ActivationKind kind : kKinds)
    for (const uint32_t function : {kActivationSilu, kActivationGeluTanh}) {
      const uint32_t n = kind == ActivationKind::q8_32 ? 96 : 77;
      Case c{"gated_activation", {Operation::gated_activation, number(kind)}, {}, {}};
      c.set_params(GatedActivationParams{n, function, 0, 0});
      c.operands.emplace(0, floats(uint64_t{kStepRows} * n, -20.0f, 20.0f));
      c.operands.emplace(1, floats(uint64_t{kStepRows} * n));
      c.operands.emplace(2, Bytes(kStepRows * activation_bytes(kind, n)));
      compare(c);
    }
  for (const Operation operation : {Operation::add, Operation::add_bias, Operation::gather_head}) {
    Case c{std::string(operation_info(operation).name), {operation}, {}, {}};
    c.set_params(AddParams{77, 0, {}});  // BiasParams and GatherParams look the same
    c.operands.emplace(0, floats(kStepRows * 77));
    c.operands.emplace(1, floats(kStepRows * 77));
    compare(c);
  }
  Case c{"soft_cap", {Operation::soft_cap}, {}, {}};
  c.set_params(SoftCapParams{4103, 30.0f, {}});
  c.operands.emplace(0, floats(kStepRows * 4103, -90.0f, 90.0f));
  compare(c);
  Case scale{"scale", {Operation::scale}, {}, {}};
  scale.set_params(ScaleParams{4103, 0.22f, {}});
  scale.operands.emplace(0, floats(kStepRows * 4103, -90.0f, 90.0f));
  compare(scale);
}

void sampling() {
  const uint32_t vocab_size = 1003;
  Case sample{"sample", {Operation::sample}, {}, {}};
  sample.set_params(SampleParams{vocab_size, kLogStride, {}});
  sample.operands.emplace(0, floats(uint64_t{kHeadRows} * vocab_size, -8.0f, 8.0f));
  Bytes log(4 * 2 * kLogStride);
  for (uint32_t i = 0; i < 2 * kLogStride; ++i)
    log.as<uint32_t>()[i] = static_cast<uint32_t>(random_bits()) % vocab_size;
  sample.operands.emplace(1, log);
  sample.operands.emplace(2, Bytes(4 * kStepRows));
  Bytes mask(4 * kHeadRows * mask_words(vocab_size)), options(4 * 2 * kMaxOptionWords);
  for (uint32_t i = 0; i < kHeadRows * mask_words(vocab_size); ++i)
    mask.as<uint32_t>()[i] = static_cast<uint32_t>(random_bits());
  const TokenBias biases[] = {{17, 2.5f}, {1000, -1.0f}};
  std::memcpy(options.as<uint32_t>() + kMaxOptionWords + 6, biases, sizeof biases);
  sample.operands.emplace(3, mask);
  sample.operands.emplace(4, options);
  compare(sample);
  for (const auto& [name, sampling] : std::initializer_list<std::pair<const char*, Sampling>>{
           {"of all tokens", {.temperature = 1.5f, .seed_low = 7}},
           {"with top_p", {.temperature = 1.5f, .top_p = 0.8f, .seed_low = 8}},
           {"with typical_p", {.temperature = 1.5f, .typical_p = 0.7f, .seed_high = 9}},
           {"with XTC", {.temperature = 2.0f, .xtc_probability = 0.5f, .xtc_threshold = 0.001f}},
           {"with top_n_sigma", {.temperature = 3.0f, .top_n_sigma = 1.0f}}}) {
    sample.name = std::string("sample ") + name;
    sample.sampling = sampling;
    compare(sample);
  }

  Case logprobs{"logprobs", {Operation::logprobs}, {}, {}};
  logprobs.set_params(LogprobsParams{vocab_size, kLogStride, {}});
  logprobs.operands.emplace(0, floats(uint64_t{kHeadRows} * vocab_size, -8.0f, 8.0f));
  logprobs.operands.emplace(1, log);
  Bytes picked(4 * kStepRows);
  for (uint32_t r = 0; r < kStepRows; ++r)
    picked.as<uint32_t>()[r] = static_cast<uint32_t>(random_bits()) % vocab_size;
  logprobs.operands.emplace(2, picked);
  logprobs.operands.emplace(3, Bytes(uint64_t{2} * kLogprobPlaces * sizeof(TokenLogprobs)));
  compare(logprobs);

  Case advance{"advance", {Operation::advance}, {}, {}};
  advance.set_params(AdvanceParams{kLogStride, {}});
  advance.operands.emplace(0, Bytes(4 * kStepRows));
  advance.operands.emplace(1, log);
  compare(advance);
}

}  // namespace

// With an argument it says only which levels there are.
int main(int n_arguments, char**) {
  for (const IsaLevel& level : isa_levels())
    std::printf("%s: %s\n", std::string(level.name).c_str(),
                !level.is_built()      ? "not in this build"
                : level.is_available() ? "available"
                                       : "not available here");
  if (n_arguments > 1) return 0;
  if (find_reference<AKUNU_HAS_Fused>() == nullptr) {
    std::puts("no level with an FMA can run here: there is nothing to compare");
    return 0;
  }
  embeddings();
  matmuls();
  int16_matmuls();
  plane_matmuls();
  matmul_groups();
  gated_matmuls();
  norms();
  ropes();
  caches();
  rotated_keys();
  hadamards();
  matmul_rope_kv_writes();
  attentions();
  elementwise();
  sampling();
  return akunu::test::summary();
}
