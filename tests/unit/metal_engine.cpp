// The engine on the emulated Metal device: chains, commands recorded and encoded anew, fused and not.
//   metal_engine MODEL.gguf
#include <cmath>
#include <cstdlib>

#include "inference/scheduler.h"
#include "registry.h"
#include "unit/check.h"
#include "unit/device_variant.h"
#include "unit/three_texts.h"

namespace akunu::test {
namespace {

constexpr std::chrono::milliseconds kWait{600'000};
constexpr uint32_t kSteps = kShort ? 3 : 8;

struct Engine {
  explicit Engine(const std::string& path, bool fused = true, uint32_t chain_steps = 1,
                  uint32_t submissions_ahead = 0)
      : device(std::make_shared<DeviceVariant>(create_device("metal-emulated"), fused, chain_steps,
                                               submissions_ahead)),
        model(Model::load(path, device, {.context = 256, .kv_memory = std::nullopt})),
        scheduler(*model) {}

  std::vector<uint32_t> generate(uint32_t n_tokens) {
    const auto generation = scheduler.generate({.prompt = {17, 4, 99, 1200, 5},
                                                .max_tokens = n_tokens,
                                                .stop_ids = {},
                                                .sampling = {.temperature = 1.5f, .seed_low = 3}});
    std::vector<uint32_t> all;
    std::array<uint32_t, 16> some;
    while (const size_t n = generation->next(some, kWait).value_or(0))
      all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(n));
    return all;
  }

  std::vector<float> logits(bool generated) {
    const auto task = scheduler.logits(
        {.tokens = {17, 4, 99, 1200, 5}, .first = 0, .chunks = {3, 1, 1}, .generated = generated});
    check(task->wait(kWait), "logits arrive");
    const std::unique_ptr<float[]> logits = task->take();
    return {logits.get(), logits.get() + 5 * size_t{model->context.arch().vocab_size}};
  }

  std::shared_ptr<DeviceVariant> device;
  std::unique_ptr<Model> model;
  Scheduler scheduler;
};

void test_chains(const std::string& path) {
  const std::vector<uint32_t> single = Engine(path).generate(1 + 2 * kSteps);
  check(single.size() == 1 + 2 * kSteps, "as many tokens as were asked for");
  check(Engine(path, true, kSteps).generate(1 + 2 * kSteps) == single,
        "a chain is its single steps");
  Engine ahead(path, true, kSteps, 1);
  check(ahead.generate(1 + 2 * kSteps) == single, "also where the next chain is submitted before");
  check(ahead.device->most_in_flight() == 2, "which it is");
  setenv("AKUNU_METAL_ENCODING", "plain", 1);
  check(Engine(path, true, kSteps).generate(1 + kSteps) ==
            std::vector(single.begin(), single.begin() + 1 + kSteps),
        "recorded steps are those encoded anew");
  unsetenv("AKUNU_METAL_ENCODING");
}

void test_fusion(const std::string& path) {
  Engine fused(path), unfused(path, false);
  for (const bool generated : {false, true}) {
    const std::vector<float> a = fused.logits(generated), b = unfused.logits(generated);
    float largest = 0, difference = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(b[i]));
      difference = std::max(difference, std::abs(a[i] - b[i]));
    }
    check(largest > 1 && difference <= 1e-3f * largest, "fused and unfused rows agree");
  }
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  if (argc != 2) {
    std::fprintf(stderr, "usage: metal_engine MODEL.gguf\n");
    return 2;
  }
  test_chains(argv[1]);
  test_fusion(argv[1]);
  test_bad_rows(argv[1], akunu::create_device("metal-emulated"));
  test_masks_between(argv[1], akunu::create_device("metal-emulated"));
  return summary();
}
