// The driver of contexts that share one model's weights: each generates what a model loaded alone does, side by side; the
// weights are there once, and until the last context is closed.
//   contexts MODEL.gguf
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device_share.h"
#include "unit/engine.h"

namespace akunu::test {
namespace {

const LoadOptions kFirst{.context = 1024, .kv_memory = std::nullopt};
const LoadOptions kSecond{.context = 300, .kv_memory = std::nullopt, .kv_format = Format::f32};

GenerateRequest request(uint32_t i) {
  return {.prompt = make_tokens(20 + 70 * (i % 3), 1000, i + 1),
          .max_tokens = 40,
          .stop_ids = {},
          .sampling = {.temperature = 2.0f, .seed_low = i}};
}

constexpr uint32_t kTexts = 6;

struct Computed {
  std::vector<std::vector<uint32_t>> texts;
  std::vector<float> logits;
};

Computed computed_alone(const std::string& path, const LoadOptions& options) {
  Engine engine(Model::load(path, create_device("cpu", {.threads = 2}), options));
  Computed computed;
  for (uint32_t i = 0; i < kTexts; ++i)
    computed.texts.push_back(collect(*engine.scheduler.generate(request(i))));
  computed.logits = logits_of(engine, request(1).prompt, {}, false);
  return computed;
}

struct Shared {
  explicit Shared(const std::string& path)
      : device(std::make_shared<SharedDevice>(create_device("cpu", {.threads = 2}))),
        share(std::make_shared<DeviceShare>(device)),
        weights(load_weights(path, share, kFirst)),
        one(std::make_unique<Engine>(Model::over(weights, share, kFirst))),
        two(std::make_unique<Engine>(Model::over(weights, share->share(), kSecond))) {
    share.reset();
    seen = weights;
    weights.reset();  // the contexts have them
  }
  std::shared_ptr<SharedDevice> device;
  std::shared_ptr<Device> share;
  std::shared_ptr<const Weights> weights;
  std::weak_ptr<const Weights> seen;
  std::unique_ptr<Engine> one, two;
};

std::map<std::string, uint64_t> uses_of(const Device& device) {
  std::map<std::string, uint64_t> uses;
  for (const MemoryUse& use : device.memory_use())
    uses[use.mapped ? use.label + " (mapped)" : use.label] += use.bytes;
  return uses;
}

uint64_t sum_of(const std::map<std::string, uint64_t>& uses) {
  uint64_t sum = 0;
  for (const auto& [label, bytes] : uses) sum += bytes;
  return sum;
}

void test_each_context_gives_the_texts_of_a_model_alone(const std::string& path) {
  const Computed first = computed_alone(path, kFirst), second = computed_alone(path, kSecond);
  check(!same_bits(first.logits, second.logits), "the two caches round differently");
  const Shared shared(path);
  std::vector<std::shared_ptr<Generation>> ones, twos;
  for (uint32_t i = 0; i < kTexts; ++i) {
    ones.push_back(shared.one->scheduler.generate(request(i)));
    twos.push_back(shared.two->scheduler.generate(request(i)));
  }
  for (uint32_t i = 0; i < kTexts; ++i) {
    check(collect(*ones[i]) == first.texts[i], "a text of the first context");
    check(collect(*twos[i]) == second.texts[i], "a text of the second context");
  }
  for (const auto& [engine, alone] :
       {std::pair(shared.one.get(), &first), std::pair(shared.two.get(), &second)})
    check(same_bits(logits_of(*engine, request(1).prompt, {}, false), alone->logits), "logits");
}

void test_a_second_context_takes_its_cache_and_little_more(const std::string& path) {
  const Engine alone(Model::load(path, create_device("cpu", {.threads = 2}), kSecond));
  std::map<std::string, uint64_t> expected = uses_of(*alone.model->context.device);
  const uint64_t weights = expected["weights (mapped)"];
  check(weights > 0, "a model alone has weights");
  const Shared shared(path);
  check(uses_of(*shared.device->device)["weights (mapped)"] == weights, "weights are there once");
  std::map<std::string, uint64_t> found = uses_of(*shared.two->model->context.device);
  check(!found.contains("weights (mapped)"), "none are counted for the second context");
  for (const std::string label : {"cache", "scratch"})
    check(found[label] == expected[label] && found[label] > 0, label + " is that of one alone");
  // The command queue, which both have, grows with the larger context and counts for each.
  check(
      static_cast<double>(sum_of(found)) <= 1.05 * static_cast<double>(sum_of(expected) - weights),
      std::to_string(sum_of(found)) + " bytes in all");
}

void test_contexts_are_closed_in_any_order(const std::string& path) {
  for (const bool first_goes : {true, false}) {
    Shared shared(path);
    std::unique_ptr<Engine>& goes = first_goes ? shared.one : shared.two;
    std::unique_ptr<Engine>& stays = first_goes ? shared.two : shared.one;
    const auto expected = collect(*stays->scheduler.generate(request(1)));
    const auto under_way = stays->scheduler.generate(request(1));
    goes.reset();
    check(collect(*under_way) == expected, "a running text continues");
    check(collect(*stays->scheduler.generate(request(1))) == expected, "and others begin");
    check(!shared.seen.expired(), "the weights stay with the context that stays");
    stays.reset();
    check(shared.seen.expired(), "and go with it");
    check(!uses_of(*shared.device->device).contains("weights (mapped)") ||
              uses_of(*shared.device->device)["weights (mapped)"] == 0,
          "nothing of the file is mapped any more");
  }
}

void test_a_context_that_cannot_be_leaves_the_others(const std::string& path) {
  const Shared shared(path);
  const auto expected = collect(*shared.one->scheduler.generate(request(2)));
  const std::shared_ptr<const Weights> weights = shared.seen.lock();
  const std::string refused = message_of<OutOfMemoryError>(
      [&] { Model::over(weights, weights->device->share(), {.context = 1024, .kv_memory = 1}); });
  check(contains(refused, "cache"), refused);
  check(collect(*shared.one->scheduler.generate(request(2))) == expected, "the first is well");
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  if (argc != 2) {
    std::fprintf(stderr, "usage: contexts MODEL.gguf\n");
    return 2;
  }
  const std::string path = argv[1];
  test_each_context_gives_the_texts_of_a_model_alone(path);
  test_a_second_context_takes_its_cache_and_little_more(path);
  test_contexts_are_closed_in_any_order(path);
  test_a_context_that_cannot_be_leaves_the_others(path);
  return summary();
}
