// Which weights stay in the host's memory where a device's own is too small: decided from numbers, and asked of a
// device that says it has some.
#include "inference/weight_placement.h"

#include "core/error.h"
#include "inference/model.h"
#include "registry.h"
#include "unit/check.h"
#include "unit/device_variant.h"
#include "unit/engine.h"

namespace akunu::test {
namespace {

using Names = std::set<std::string, std::less<>>;

const std::vector<std::byte> kBytes(1000);

SourceTensor tensor_of(std::string name, size_t bytes, uint32_t n_dims = 2) {
  SourceTensor tensor;
  tensor.name = std::move(name);
  tensor.n_dims = n_dims;
  tensor.parts[0].bytes = std::span(kBytes).first(bytes);
  return tensor;
}

std::vector<SourceTensor> model_of_experts() {
  std::vector<SourceTensor> tensors{tensor_of("token_embedding.weight", 90),
                                    tensor_of("output.weight", 80),
                                    tensor_of("output_norm.weight", 1, 1)};
  for (const char* layer :
       {"layers.0.", "layers.1.", "layers.2.", "layers.3.", "layers.4.", "layers.5."})
    for (const auto& [name, bytes, n_dims] : {std::tuple{"attention.q.weight", 10, 2u},
                                              {"ffn.experts.up.weight", 100, 3u},
                                              {"attention_norm.weight", 2, 1u}})
      tensors.push_back(tensor_of(std::string(layer) + name, static_cast<size_t>(bytes), n_dims));
  return tensors;  // 843 bytes
}

void test_what_costs_least_leaves_first() {
  const std::vector<SourceTensor> tensors = model_of_experts();
  Names names;
  const auto with = [&](std::initializer_list<const char*> more) {
    for (const char* name : more) names.insert(name);
    return names;
  };
  const struct {
    uint64_t room;
    Names names;
    uint64_t host_bytes, staged_bytes;
    std::string what;
  } cases[] = {
      {843, with({}), 0, 0, ""},
      {842, with({"token_embedding.weight"}), 90, 0, "tables of embeddings"},
      {753, with({}), 90, 0, "tables of embeddings"},
      // Beside the other experts there must be room for a copy of three matrices.
      {700,
       with({"layers.5.ffn.experts.up.weight", "layers.4.ffn.experts.up.weight",
             "layers.3.ffn.experts.up.weight", "layers.2.ffn.experts.up.weight"}),
       490, 300, "tables of embeddings and the experts of layers 2 to 5"},
      {445,
       with({"layers.1.ffn.experts.up.weight", "layers.0.ffn.experts.up.weight",
             "layers.5.attention.q.weight"}),
       700, 300,
       "tables of embeddings, the experts of layers 0 to 5 and other matrices of layer 5"},
  };
  for (const auto& each : cases) {
    const WeightPlacement found = place_weights(tensors, each.room);
    const std::string label = "room for " + std::to_string(each.room);
    check(found.in_host_memory == each.names, label);
    check(found.host_bytes == each.host_bytes && found.device_bytes == 843 - each.host_bytes &&
              found.staged_bytes == each.staged_bytes,
          label + ": bytes");
    check(found.what == each.what, label + ": " + found.what);
  }
  const WeightPlacement nothing = place_weights(tensors, 0);
  check(nothing.device_bytes == 13, "vectors stay");
}

// A matrix that rows are multiplied with is no table, even where it is one, too.
void test_a_tied_table_leaves_last() {
  std::vector<SourceTensor> tensors{tensor_of("token_embedding.weight", 90)};
  for (int layer = 0; layer < 12; ++layer)
    tensors.push_back(tensor_of("layers." + std::to_string(layer) + ".attention.q.weight", 10));
  const WeightPlacement found = place_weights(tensors, 200);
  check(found.what == "other matrices of layers 8 to 11", found.what);
  check(place_weights(tensors, 99).staged_bytes == 270, "and is multiplied with");
}

// The CPU, as if it had so much memory of its own.
class OwnMemory final : public DeviceVariant {
 public:
  explicit OwnMemory(uint64_t bytes)
      : DeviceVariant(create_device("cpu", {.threads = 1}), true, 1), bytes_(bytes) {}

  bool has_own_memory() const override { return true; }
  MemoryLeft memory_left() const override {
    return {.memory = bytes_, .address_space = std::nullopt};
  }
  // Nothing of a file is mapped there.
  std::vector<MemoryUse> memory_use() const override {
    std::vector<MemoryUse> uses = inner().memory_use();
    std::erase_if(uses, &MemoryUse::mapped);
    uses.push_back({"weights", weight_bytes_, false});
    return uses;
  }
  Weight import_weight(const WeightSource& source) override {
    (source.in_host_memory ? in_host_memory : on_device).insert(std::string(source.name));
    const Weight weight = inner().import_weight(source);
    weight_bytes_ += source.rows * row_bytes(source.format, source.k);
    return weight;
  }
  void release_weight(const Weight& weight) override {
    weight_bytes_ -= weight.rows * row_bytes(weight.format, weight.k);
    inner().release_weight(weight);
  }

  Names in_host_memory, on_device;

 private:
  uint64_t bytes_;
  uint64_t weight_bytes_ = 0;
};

void test_a_model_with_room(const std::string& path) {
  const auto device = std::make_shared<OwnMemory>(uint64_t{4} << 30);
  const auto model = Model::load(path, device, {.context = 256, .kv_memory = {}});
  check(device->in_host_memory.empty() && model->notes().empty(), "all of it is on the device");
}

void test_a_model_without(const std::string& path) {
  uint64_t n_before = 0;
  bool is_split = false;
  const auto device = std::make_shared<OwnMemory>(uint64_t{4} << 30);
  for (uint64_t mib = 96; mib >= 76; --mib) {
    device->in_host_memory.clear();
    device->on_device.clear();
    const auto model =
        Model::load(path, device, {.context = 256, .kv_memory = {}, .gpu_memory = mib << 20});
    const uint64_t n = device->in_host_memory.size();
    check(n >= n_before, "less memory never has more weights");
    n_before = n;
    if (n == 0) continue;
    is_split |= std::ranges::any_of(
        device->on_device, [](const std::string& name) { return contains(name, "attn_q.weight"); });
    check(model->notes().size() == 1 && contains(model->notes()[0], "the GPU has no room for") &&
              contains(model->notes()[0], "other matrices of layer"),
          model->notes().empty() ? "no note" : model->notes()[0]);
  }
  check(is_split, "between all and nothing there are some");

  const std::string small = message_of<OutOfMemoryError>(
      [&] { Model::load(path, device, {.context = 256, .kv_memory = {}, .gpu_memory = 1 << 20}); });
  check(contains(small, "no memory for a cache") && contains(small, "are available"), small);
}

void test_a_device_without_its_own(const std::string& path) {
  const std::string refused = message_of<ArgumentError>([&] {
    Model::load(path, create_device("cpu", {.threads = 1}),
                {.context = 256, .kv_memory = {}, .gpu_memory = 1 << 20});
  });
  check(contains(refused, "gpu_memory is for GPUs") && contains(refused, "cpu"), refused);
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  const std::string path = model_of(argc, argv);
  test_what_costs_least_leaves_first();
  test_a_tied_table_leaves_last();
  test_a_model_with_room(path);
  test_a_model_without(path);
  test_a_device_without_its_own(path);
  return summary();
}
