// An engine on the CPU, and what drivers ask of it.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "inference/scheduler.h"
#include "registry.h"
#include "unit/check.h"
#include "unit/device_variant.h"
#include "unit/hidden_memory.h"

namespace akunu::test {

constexpr std::chrono::milliseconds kWait{600'000};  // a sanitizer on a busy machine takes its time

// Whether the devices of this run have memory that the host cannot see.
inline bool hides_memory = false;

inline std::shared_ptr<Device> create_cpu(uint32_t threads) {
  std::shared_ptr<Device> device = create_device("cpu", {.threads = threads});
  if (hides_memory) return std::make_shared<HiddenMemory>(std::move(device));
  return device;
}

// The model that a driver is called with: [--hidden-memory] MODEL.gguf. Empty where that is wrong.
inline std::string model_of(int argc, char** argv) {
  hides_memory = argc == 3 && std::string_view(argv[1]) == "--hidden-memory";
  if (argc == (hides_memory ? 3 : 2)) return argv[argc - 1];
  std::fprintf(stderr, "usage: %s [--hidden-memory] MODEL.gguf\n", argv[0]);
  return {};
}

struct Engine {
  Engine(const std::string& path, uint32_t threads, uint32_t context = 1024,
         bool prefix_cache = true)
      : Engine(path, create_cpu(threads), context, prefix_cache) {}
  Engine(const std::string& path, std::shared_ptr<Device> device, uint32_t context = 1024,
         bool prefix_cache = true)
      : model(
            Model::load(path, std::move(device), {.context = context, .kv_memory = std::nullopt})),
        scheduler(*model, {.prefix_cache = prefix_cache}) {}
  explicit Engine(std::unique_ptr<Model> loaded) : model(std::move(loaded)), scheduler(*model) {}
  std::unique_ptr<Model> model;
  Scheduler scheduler;
};

// Tokens that look like no text in particular.
inline std::vector<uint32_t> make_tokens(size_t n, uint32_t vocab_size, uint32_t seed = 1) {
  std::vector<uint32_t> tokens(n);
  for (uint32_t& token : tokens) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' LCG
    token = (seed >> 8) % vocab_size;
  }
  return tokens;
}

inline std::vector<uint32_t> collect(Generation& generation) {
  std::vector<uint32_t> all;
  std::array<uint32_t, 16> some;
  while (true) {
    const size_t n = generation.next(some, kWait).value_or(0);
    all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(n));
    if (n == 0) return all;
  }
}

inline std::vector<float> logits_of(Engine& engine, const std::vector<uint32_t>& tokens,
                                    const std::vector<uint32_t>& chunks, bool generated,
                                    uint32_t first = 0) {
  const std::shared_ptr<LogitsTask> task = engine.scheduler.logits(
      {.tokens = tokens, .first = first, .chunks = chunks, .generated = generated});
  check(task->wait(kWait), "logits arrive");
  const std::unique_ptr<float[]> logits = task->take();
  return {logits.get(),
          logits.get() + (tokens.size() - first) * engine.model->context.arch().vocab_size};
}

// The last rows of some logits.
inline std::vector<float> last_rows(const std::vector<float>& logits, size_t n,
                                    uint32_t vocab_size) {
  return {logits.end() - static_cast<ptrdiff_t>(n * vocab_size), logits.end()};
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace akunu::test
