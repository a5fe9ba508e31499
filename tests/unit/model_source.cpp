// What becomes of a source's tensors: names that cut, numbers that change while they are loaded, three dimensions, and
// weights of several planes, alone and in a whole model.
#include "files/model_source.h"

#include <cmath>
#include <cstring>
#include <random>

#include "core/error.h"
#include "files/names.h"
#include "inference/device_tensors.h"
#include "unit/engine.h"
#include "unit/half.h"

namespace akunu::test {
namespace {

template <class T>
WeightPart part_of(std::vector<T> numbers) {
  const auto owner = std::make_shared<std::vector<T>>(std::move(numbers));
  return {std::as_bytes(std::span(*owner)), owner};
}

SourceTensor tensor_of(std::string name, Format format, std::vector<uint64_t> shape,
                       std::array<WeightPart, kMaxPlanes> parts) {
  SourceTensor tensor;
  tensor.name = name;
  tensor.name_in_file = std::move(name);
  tensor.path = "made.up";
  tensor.format = format;
  tensor.n_dims = static_cast<uint32_t>(shape.size());
  std::copy_backward(shape.begin(), shape.end(), tensor.shape.end());
  tensor.parts = std::move(parts);
  return tensor;
}

ModelSource source_of(std::vector<SourceTensor> tensors) {
  ModelSource source;
  source.path = "made.up";
  source.tensors = std::move(tensors);
  return source;
}

std::vector<float> read(const Device& device, const Weight& weight) {
  std::vector<float> values(weight.rows * weight.k);
  device.read(weight.planes[0], std::as_writable_bytes(std::span(values)));
  return values;
}

// Gemma's norms as Hugging Face stores them.
void test_one_is_added_where_a_rule_says_so() {
  constexpr std::array kRules{NameRule{"norm", {{{"output_norm"}}}, Transform::add_one}};
  const NameRules rules{"layers.", kRules, {}, {}};
  const std::shared_ptr<Device> device = create_device("cpu", {.threads = 1});
  const struct {
    Format format;
    WeightPart part;
  } cases[] = {{Format::f32, part_of<float>({0.5f, -0.25f, 0.0f})},
               {Format::f16, part_of<uint16_t>({0x3800, 0xb400, 0})},
               {Format::bf16, part_of<uint16_t>({0x3f00, 0xbe80, 0})}};
  for (const auto& [format, part] : cases) {
    const SourceTensor raw = tensor_of("norm.weight", format, {3}, {part});
    const DeviceTensors weights(device, source_of(give_names(rules, "norm.weight", raw, {})));
    const auto found = weights.map().find("output_norm.weight");
    check(found != weights.map().end() && found->second.format == Format::f32 &&
              read(*device, found->second) == std::vector{1.5f, 0.75f, 1.0f},
          format_info(format).name);
  }
  check(device->memory_use().empty(), "weights give back what they took");
}

void test_what_is_refused_leaves_nothing_on_the_device() {
  const std::shared_ptr<Device> device = create_device("cpu", {.threads = 1});
  const auto refused = [&](SourceTensor tensor, std::string_view text) {
    const SourceTensor sound = tensor_of("a", Format::f32, {2, 2}, {part_of<float>({1, 2, 3, 4})});
    const std::string message = message_of<UnsupportedModelError>(
        [&] { DeviceTensors(device, source_of({sound, std::move(tensor)})); });
    check(contains(message, "made.up: tensor b") && contains(message, text), message);
    check(device->memory_use().empty(), "what was imported before is released");
  };
  refused(tensor_of("b", Format::q4_0, {32}, {part_of(std::vector<uint8_t>(18))}),
          "one-dimensional and quantised");
  SourceTensor changed = tensor_of("b", Format::f32, {1, 2}, {part_of<float>({1, 2})});
  changed.transform = Transform::add_one;
  refused(changed, "has 2 dimensions");
}

// Matrices of experts: as one that has the rows of all.
void test_three_dimensions_are_rows() {
  constexpr std::array kRules{NameRule{"experts", {{{"all"}}}, Transform::none, 3},
                              NameRule{"matrix", {{{"one"}}}}};
  const NameRules rules{"layers.", kRules, {}, {}};
  const std::shared_ptr<Device> device = create_device("cpu", {.threads = 1});
  std::vector<float> numbers(2 * 3 * 4);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const WeightPart part = part_of(numbers);
  const SourceTensor raw = tensor_of("x", Format::f32, {2, 3, 4}, {part});
  const DeviceTensors weights(device, source_of(give_names(rules, "experts.weight", raw, {})));
  const Weight& weight = weights.map().at("all.weight");
  check(weight.rows == 6 && weight.k == 4 && read(*device, weight) == numbers, "[2 * 3, 4]");
  check(weight.planes[0].buffer.contents == part.bytes.data(), "where they lie");
  check(contains(
            message_of<UnsupportedModelError>([&] { give_names(rules, "matrix.weight", raw, {}); }),
            "has 3 dimensions"),
        "only where a rule has them");
}

// --- Planes -------------------------------------------------------------------------------------

struct Matrix {
  SourceTensor planes;  // mlx4_64 or mlx8_64
  SourceTensor floats;  // the same numbers as float32
};

Matrix random_matrix(uint32_t bits, uint64_t n, uint64_t k, std::mt19937& random) {
  std::vector<uint8_t> codes(n * k * bits / 8);
  std::vector<uint16_t> scales(n * k / 64), biases(n * k / 64);
  for (uint8_t& byte : codes) byte = static_cast<uint8_t>(random());
  // Around 2^-8 and 2^-3, of both signs; eight bits have smaller steps.
  for (uint16_t& scale : scales)
    scale = static_cast<uint16_t>((random() & 0x83ff) | (bits == 8 ? 3u : 7u) << 10);
  for (uint16_t& bias : biases) bias = static_cast<uint16_t>((random() & 0x83ff) | 12u << 10);
  std::vector<float> values(n * k);
  for (uint64_t i = 0; i < n * k; ++i) {
    const uint32_t code = bits == 8 ? codes[i] : codes[i / 2] >> i % 2 * 4 & 15;
    values[i] = static_cast<float>(half_value(scales[i / 64]) * code + half_value(biases[i / 64]));
  }
  return {tensor_of("", *mlx_format({bits, 64, MlxScale::f16}), {n, k},
                    {part_of(codes), part_of(scales), part_of(biases)}),
          tensor_of("", Format::f32, {n, k}, {part_of(values)})};
}

void test_a_cut_goes_through_every_plane() {
  ModelConfig config;
  config.layers.assign(
      8,
      {.n_heads = 3, .n_kv_heads = 1, .head_dim = 2, .ffn_dim = 1, .windowed = {}, .rotates = {}});
  std::mt19937 random(1);
  const SourceTensor whole = random_matrix(4, 10, 128, random).planes;
  const std::vector<SourceTensor> pieces =
      give_names(gguf_names("phi3"), "blk.7.attn_qkv.weight", whole, config);
  check(pieces.size() == 3 && pieces[1].name == "layers.7.attention.k.weight", "three pieces");
  const uint64_t first_rows[] = {0, 6, 8}, n_rows[] = {6, 2, 2};
  const uint64_t row_bytes[] = {64, 4, 4};  // 128 codes of four bits, two halves
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t plane = 0; plane < 3; ++plane) {
      const std::span<const std::byte> bytes = pieces[i].parts[plane].bytes;
      check(pieces[i].rows() == n_rows[i] && bytes.size() == n_rows[i] * row_bytes[plane] &&
                bytes.data() == whole.parts[plane].bytes.data() + first_rows[i] * row_bytes[plane],
            "a view of the rows");
    }
}

// Two models of the same numbers.
struct Twins {
  ModelSource planes, floats;

  Twins() {
    ModelConfig config;
    config.architecture = "llama";
    config.dim = 128;
    config.layers.assign(2, {.n_heads = 4,
                             .n_kv_heads = 2,
                             .head_dim = 32,
                             .ffn_dim = 192,
                             .windowed = {},
                             .rotates = {}});
    config.rope.dim = 32;
    config.vocab_size = 90;
    config.context_length = 64;
    config.rope.theta = 10000;
    config.norm_epsilon = 1e-5f;
    planes.path = floats.path = "made.up";
    planes.config = floats.config = config;
    add_matrix("token_embd.weight", 8, 90, 128);
    add_norm("output_norm.weight");
    for (uint32_t layer = 0; layer < config.layers.size(); ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      add_norm(prefix + "attn_norm.weight");
      add_matrix(prefix + "attn_qkv.weight", 4, 128 + 64 + 64, 128);
      add_matrix(prefix + "attn_output.weight", 8, 128, 128);
      add_norm(prefix + "ffn_norm.weight");
      add_matrix(prefix + "ffn_up.weight", 4, 2 * 192, 128);  // gate, up
      add_matrix(prefix + "ffn_down.weight", 4, 128, 192);
    }
  }

 private:
  void add_matrix(const std::string& name, uint32_t bits, uint64_t n, uint64_t k) {
    const Matrix matrix = random_matrix(bits, n, k, random_);
    add(planes, name, matrix.planes);
    add(floats, name, matrix.floats);
  }
  void add_norm(const std::string& name) {
    const SourceTensor norm =
        tensor_of(name, Format::f32, {128}, {part_of(std::vector(128, 1.0f))});
    add(planes, name, norm);
    add(floats, name, norm);
  }
  static void add(ModelSource& source, const std::string& name, const SourceTensor& tensor) {
    for (SourceTensor& named : give_names(gguf_names("qwen3"), name, tensor, source.config))
      source.tensors.push_back(std::move(named));
  }
  std::mt19937 random_{7};
};

void test_a_model_of_planes_computes_what_its_numbers_say() {
  const Twins twins;
  const std::vector<uint32_t> tokens = make_tokens(37, 90);
  for (const std::string_view device : backend_names()) {
    if (device == "metal" || device == "cuda")
      continue;  // these need a GPU; Metal's emulator is here
    const auto logits = [&](const ModelSource& source, bool generated) {
      Engine engine(
          Model::load(source, create_device(device, {.threads = 2}),
                      {.context = 64, .kv_memory = std::nullopt, .kv_format = Format::f32}));
      std::vector<uint32_t> chunks;
      if (generated) chunks = {16, 1, 16, 4};
      return logits_of(engine, tokens, chunks, generated);
    };
    for (const bool generated : {false, true}) {
      const std::vector<float> expected = logits(twins.floats, generated),
                               found = logits(twins.planes, generated);
      float largest = 0, error = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        error = std::max(error, std::abs(expected[i] - found[i]));
      }
      // As tests/models hold float32 to float64; the CPU multiplies codes of 14 bits, which
      // is held as halves are.
      const float bound = device == "cpu" ? 4e-3f : 2e-4f;
      check(largest > 0.1f && error <= bound * largest, std::string(device) + ": error " +
                                                            std::to_string(error) + " beside " +
                                                            std::to_string(largest));
    }
  }
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_one_is_added_where_a_rule_says_so();
  test_what_is_refused_leaves_nothing_on_the_device();
  test_three_dimensions_are_rows();
  test_a_cut_goes_through_every_plane();
  test_a_model_of_planes_computes_what_its_numbers_say();
  return summary();
}
