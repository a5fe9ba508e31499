// The engine driver: loads the packaged model and holds the engine to what it promises about
// allocation, row invariance and threads. Runs plain and under ASan, UBSan and TSan.
//   engine MODEL.gguf
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "inference/scheduler.h"
#include "inference/step.h"
#include "registry.h"
#include "unit/allocation_hook.h"
#include "unit/check.h"
#include "unit/device_variant.h"

namespace akunu::test {
namespace {

constexpr std::chrono::milliseconds kWait{600'000};  // a sanitizer on a busy machine takes its time

struct Engine {
  Engine(const std::string& path, uint32_t threads, uint32_t context = 1024,
         bool prefix_cache = true)
      : Engine(path, create_device("cpu", {.threads = threads}), context, prefix_cache) {}
  Engine(const std::string& path, std::shared_ptr<Device> device, uint32_t context = 1024,
         bool prefix_cache = true)
      : model(
            Model::load(path, std::move(device), {.context = context, .kv_memory = std::nullopt})),
        scheduler(*model, prefix_cache) {}
  std::unique_ptr<Model> model;
  Scheduler scheduler;
};

// Tokens that look like no text in particular.
std::vector<uint32_t> make_tokens(size_t n, uint32_t vocab_size, uint32_t seed = 1) {
  std::vector<uint32_t> tokens(n);
  for (uint32_t& token : tokens) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' LCG
    token = (seed >> 8) % vocab_size;
  }
  return tokens;
}

std::vector<uint32_t> collect(Generation& generation) {
  std::vector<uint32_t> all;
  std::array<uint32_t, 16> some;
  while (true) {
    const size_t n = generation.next(some, kWait);
    all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(n));
    if (n == 0) return all;
  }
}

std::vector<float> logits_of(Engine& engine, const std::vector<uint32_t>& tokens,
                             const std::vector<uint32_t>& chunks, bool generated,
                             uint32_t first = 0) {
  const std::shared_ptr<LogitsTask> task = engine.scheduler.logits(
      {.tokens = tokens, .first = first, .chunks = chunks, .generated = generated});
  check(task->wait(kWait), "logits arrive");
  const std::unique_ptr<float[]> logits = task->take();
  return {logits.get(), logits.get() + (tokens.size() - first) * engine.model->arch().vocab_size};
}

// The last rows of some logits.
std::vector<float> last_rows(const std::vector<float>& logits, size_t n, uint32_t vocab_size) {
  return {logits.end() - static_cast<ptrdiff_t>(n * vocab_size), logits.end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<uint32_t> split(size_t n, std::initializer_list<uint32_t> pattern) {
  std::vector<uint32_t> chunks;
  for (size_t done = 0, i = 0; done < n; done += chunks.back(), ++i)
    chunks.push_back(
        static_cast<uint32_t>(std::min<size_t>(pattern.begin()[i % pattern.size()], n - done)));
  return chunks;
}

// A row's logits depend on its own history only: not on chunks, threads, or its neighbours.
void test_row_invariance(const std::string& path) {
  std::vector<float> prompt, generated;
  std::vector<uint32_t> tokens;
  for (uint32_t threads = 1; threads <= 3; ++threads) {
    Engine engine(path, threads);
    tokens = make_tokens(300, engine.model->arch().vocab_size);
    if (threads == 1) {
      prompt = logits_of(engine, tokens, {}, false);
      generated = logits_of(engine, tokens, split(tokens.size(), {1}), true);
    }
    check(same_bits(prompt, logits_of(engine, tokens, {}, false)),
          "prompt rows do not depend on threads");
    check(same_bits(prompt, logits_of(engine, tokens, split(tokens.size(), {7, 1, 32, 3}), false)),
          "prompt rows do not depend on chunks");
    check(same_bits(generated, logits_of(engine, tokens, split(tokens.size(), {16, 2, 5}), true)),
          "single and few rows are one arithmetic");
    const uint32_t vocab_size = engine.model->arch().vocab_size;
    check(same_bits(last_rows(generated, 284, vocab_size),
                    logits_of(engine, tokens, split(tokens.size(), {16, 2, 5}), true, 16)),
          "logits from a chunk on are those of all chunks");
    check(same_bits(last_rows(prompt, 292, vocab_size),
                    logits_of(engine, tokens, split(tokens.size(), {7, 1, 32, 3}), false, 8)),
          "logits of a prompt from a chunk on are those of all chunks");
    try {
      engine.scheduler.logits(
          {.tokens = tokens, .first = 5, .chunks = split(tokens.size(), {16}), .generated = true});
      check(false, "logits from the middle of a chunk on are refused");
    } catch (const ArgumentError&) {
    }
  }
  for (const float value : prompt)
    if (!std::isfinite(value)) return check(false, "logits are finite");
}

// What `fuse` makes of the forward pass computes the same, bit for bit, in fewer commands.
void test_fusion(const std::string& path) {
  Engine fused(path, 2);
  Engine unfused(path,
                 std::make_shared<DeviceVariant>(create_device("cpu", {.threads = 2}), false, 1));
  const std::vector<uint32_t> tokens = make_tokens(40, fused.model->arch().vocab_size);
  check(same_bits(logits_of(fused, tokens, {}, false), logits_of(unfused, tokens, {}, false)),
        "fused and unfused prompt rows agree");
  check(same_bits(logits_of(fused, tokens, split(tokens.size(), {1, 3}), true),
                  logits_of(unfused, tokens, split(tokens.size(), {1, 3}), true)),
        "fused and unfused generated rows agree");
  const size_t n_layers = fused.model->arch().layers.size();
  check(fused.model->labels(RowClass::single).size() == 8 * n_layers + 5,
        "a layer is 8 commands, and 5 stand around them");
  check(unfused.model->labels(RowClass::single).size() >= 17 * n_layers,
        "unfused it is 17 or more");
}

// Text does not depend on what else is under way.
void test_batches(const std::string& path) {
  Engine engine(path, 2);
  std::vector<std::vector<uint32_t>> alone;
  const auto request = [&](uint32_t i) {
    return GenerateRequest{
        .prompt = make_tokens(20 + 70 * i, engine.model->arch().vocab_size, i + 1),
        .max_tokens = 24,
        .stop_ids = {},
        .sampling = {.temperature = i == 1 ? 0.8f : 0.0f, .top_k = 40, .seed = 7}};
  };
  for (uint32_t i = 0; i < 3; ++i) alone.push_back(collect(*engine.scheduler.generate(request(i))));
  std::vector<std::shared_ptr<Generation>> together;
  for (uint32_t i = 0; i < 3; ++i) together.push_back(engine.scheduler.generate(request(i)));
  for (uint32_t i = 0; i < 3; ++i) {
    check(collect(*together[i]) == alone[i], "a conversation among others is the one alone");
    check(alone[i].size() == 24 && together[i]->reason() == FinishReason::length,
          "max_tokens are generated");
  }
}

// A chain of steps is single steps, also where rows stop within it, or within the chain before.
void test_chains(const std::string& path, uint32_t submissions_ahead) {
  Engine single(path, 2);
  const auto device = std::make_shared<DeviceVariant>(create_device("cpu", {.threads = 2}), true, 8,
                                                      submissions_ahead);
  Engine chained(path, device);
  std::vector<std::shared_ptr<Generation>> generations;
  for (Engine* engine : {&single, &chained})
    for (uint32_t i = 0; i < 3; ++i)
      generations.push_back(engine->scheduler.generate(
          {.prompt = make_tokens(20, engine->model->arch().vocab_size, i + 1),
           .max_tokens = 20 + 7 * i,
           .stop_ids = {},
           .sampling = {.temperature = 2.0f, .repetition_penalty = 1.1f, .seed = i}}));
  for (uint32_t i = 0; i < 3; ++i) {
    const std::vector<uint32_t> text = collect(*generations[i]);
    check(text == collect(*generations[3 + i]), "a chain of 8 steps is 8 steps");
    const GenerateRequest stopping{.prompt = generations[i]->request().prompt,
                                   .max_tokens = 40,
                                   .stop_ids = {text[10]},
                                   .sampling = generations[i]->request().sampling};
    const auto once = single.scheduler.generate(stopping);
    const auto chain = chained.scheduler.generate(stopping);
    check(collect(*once) == collect(*chain) && chain->reason() == FinishReason::stop,
          "a row stops within a chain");
  }
  check(device->most_in_flight() == 1 + submissions_ahead, "as many submissions as the chip asks");
}

void test_stop_and_limits(const std::string& path) {
  Engine engine(path, 1, 300);
  const std::vector<uint32_t> prompt = make_tokens(40, engine.model->arch().vocab_size);
  const std::vector<uint32_t> free_run = collect(*engine.scheduler.generate(
      {.prompt = prompt, .max_tokens = 12, .stop_ids = {}, .sampling = {}}));
  const auto stopped = engine.scheduler.generate(
      {.prompt = prompt, .max_tokens = 12, .stop_ids = {free_run[5]}, .sampling = {}});
  const size_t first = static_cast<size_t>(
      std::find(free_run.begin(), free_run.end(), free_run[5]) - free_run.begin());
  check(collect(*stopped).size() == first && stopped->reason() == FinishReason::stop,
        "a stop token ends the text and is not part of it");

  const auto full = engine.scheduler.generate(
      {.prompt = make_tokens(300, 100), .max_tokens = 50, .stop_ids = {}, .sampling = {}});
  check(collect(*full).size() == 1 && full->reason() == FinishReason::length,
        "a prompt that fills the context leaves room for one token");
  check(message_of<ContextOverflowError>([&] {
          engine.scheduler.generate(
              {.prompt = make_tokens(301, 100), .max_tokens = 1, .stop_ids = {}, .sampling = {}});
        }).find("301 tokens, the context holds 300") != std::string::npos,
        "a prompt that does not fit is refused with both numbers");
  check(message_of<ArgumentError>([&] {
          engine.scheduler.generate(
              {.prompt = {1u << 30}, .max_tokens = 1, .stop_ids = {}, .sampling = {}});
        }).find("outside the vocabulary") != std::string::npos,
        "a token outside the vocabulary is refused");

  const auto cancelled = engine.scheduler.generate(
      {.prompt = prompt, .max_tokens = 200, .stop_ids = {}, .sampling = {}});
  cancelled->cancel();
  collect(*cancelled);
  check(cancelled->reason() == FinishReason::cancelled || cancelled->completion_tokens() == 200,
        "a cancelled generation ends");
  check(collect(*engine.scheduler.generate(
            {.prompt = prompt, .max_tokens = 12, .stop_ids = {}, .sampling = {}})) == free_run,
        "and leaves the model as it was");
}

// Requests wait for pages rather than fail: each takes both pages of the pool.
void test_queue_and_close(const std::string& path) {
  auto engine = std::make_unique<Engine>(path, 2, 512);
  std::vector<std::thread> callers;
  std::atomic<int> complete{0};
  for (uint32_t i = 0; i < 6; ++i)
    callers.emplace_back([&, i] {
      const auto generation = engine->scheduler.generate(
          {.prompt = make_tokens(230, 1000, i), .max_tokens = 40, .stop_ids = {}, .sampling = {}});
      if (collect(*generation).size() == 40) ++complete;
    });
  for (std::thread& caller : callers) caller.join();
  check(complete == 6, "requests that find no pages wait for them");

  const auto left = engine->scheduler.generate(
      {.prompt = make_tokens(30, 1000), .max_tokens = 480, .stop_ids = {}, .sampling = {}});
  engine.reset();
  check(!message_of<Error>([&] { collect(*left); }).empty() || left->completion_tokens() == 480,
        "closing a model ends what is under way with an error");
}

// A prompt that begins like an earlier text gives the logits of one that does not, bit for bit.
void test_prefixes(const std::string& path) {
  Engine cold(path, 2);
  Engine warm(path, 2);
  const uint32_t vocab_size = cold.model->arch().vocab_size;
  for (const uint32_t n_shared : {1u, 255u, 256u, 257u, 512u}) {
    std::vector<uint32_t> tokens = make_tokens(n_shared, vocab_size, n_shared);
    const auto first = warm.scheduler.generate(
        {.prompt = tokens, .max_tokens = 3, .stop_ids = {}, .sampling = {}});
    collect(*first);
    check(first->cached_tokens() <= 2, "random tokens share no more than the first few");
    const std::vector<uint32_t> rest = make_tokens(40, vocab_size, n_shared + 1);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    const auto second = warm.scheduler.generate(
        {.prompt = tokens, .max_tokens = 3, .stop_ids = {}, .sampling = {}});
    collect(*second);
    check(second->cached_tokens() >= n_shared, "a prefix is taken over");
    const auto last = static_cast<uint32_t>(tokens.size()) - 1;
    check(same_bits(logits_of(warm, tokens, {}, false, last),
                    last_rows(logits_of(cold, tokens, {}, false), 1, vocab_size)),
          "logits after a prefix from the cache are those without");
  }
}

// Open-ended texts: two families of prompts, alike up to different places around the end of the first
// page.
GenerateRequest open_ended(uint32_t i) {
  std::vector<uint32_t> prompt = make_tokens(250 + i, 1000, i % 2);
  prompt.push_back(i);
  return {.prompt = std::move(prompt),
          .max_tokens = 1000,
          .stop_ids = {},
          .sampling = {.temperature = 2.0f, .frequency_penalty = 0.1f, .seed = i}};
}

constexpr uint32_t kTexts = 4;

std::vector<std::vector<uint32_t>> texts_alone(const std::string& path) {
  Engine engine(path, 2, 400, false);
  std::vector<std::vector<uint32_t>> alone;
  for (uint32_t i = 0; i < kTexts; ++i)
    alone.push_back(collect(*engine.scheduler.generate(open_ended(i))));
  return alone;
}

// They run side by side in a pool that holds one of them, also while others come and go: each is the
// one alone, each ends.
void test_side_by_side(const std::string& path, const std::vector<std::vector<uint32_t>>& alone,
                       bool prefix_cache, uint32_t chain_steps, uint32_t submissions_ahead) {
  const auto device = std::make_shared<DeviceVariant>(create_device("cpu", {.threads = 2}), true,
                                                      chain_steps, submissions_ahead);
  Engine engine(path, device, 400, prefix_cache);
  std::vector<std::thread> callers;
  std::atomic<int> complete{0};
  for (uint32_t i = 0; i < kTexts; ++i)
    callers.emplace_back([&, i] {
      if (collect(*engine.scheduler.generate(open_ended(i))) == alone[i]) ++complete;
    });
  callers.emplace_back([&] {  // gives up at any time
    for (uint32_t i = 0; i < 8; ++i) {
      const auto generation = engine.scheduler.generate(open_ended(i % kTexts));
      std::array<uint32_t, 4> some;
      const size_t n = generation->next(some, std::chrono::milliseconds(i % 5));
      if (i % 2 == 0)
        generation->cancel();
      else
        engine.scheduler.cut(generation, static_cast<uint32_t>(n / 2));
      collect(*generation);
    }
  });
  callers.emplace_back([&] {
    for (uint32_t i = 0; i < 2; ++i) {
      const std::vector<uint32_t> tokens = make_tokens(270, 1000, i % 2);
      const auto task = engine.scheduler.logits(
          {.tokens = tokens, .first = 269, .chunks = {}, .generated = false});
      if (task->wait(kWait)) ++complete;
    }
  });
  for (std::thread& caller : callers) caller.join();
  check(complete == kTexts + 2, "open-ended texts side by side are those alone, and end");
}

// A request that has no room keeps younger ones out, also those that would have some.
void test_order(const std::string& path) {
  Engine engine(path, 2, 1024);  // four pages
  const auto request = [&](uint32_t n_prompt, uint32_t max_tokens) {
    return engine.scheduler.generate({.prompt = make_tokens(n_prompt, 1000, n_prompt),
                                      .max_tokens = max_tokens,
                                      .stop_ids = {},
                                      .sampling = {}});
  };
  const auto oldest = request(700, 40);   // three pages
  const auto waiting = request(300, 40);  // two
  const auto small = request(10, 2);      // one, which is there
  std::array<uint32_t, 1> some;
  check(small->next(some, kWait) == 1, "the youngest comes in");
  check(oldest->completion_tokens() == 40 && waiting->prompt_tokens_done() == 300,
        "after the one that waited, which came after the oldest");
  check(collect(*waiting).size() == 40, "all end");
}

// While a text goes on, a long prompt beside it comes to its end.
void test_prompt_beside_text(const std::string& path) {
  Engine engine(path, 2);
  const auto text = engine.scheduler.generate(
      {.prompt = {1, 2, 3}, .max_tokens = 700, .stop_ids = {}, .sampling = {.temperature = 2.0f}});
  std::array<uint32_t, 1> some;
  text->next(some, kWait);
  const auto prompt = engine.scheduler.generate(
      {.prompt = make_tokens(300, 1000), .max_tokens = 1, .stop_ids = {}, .sampling = {}});
  check(collect(*prompt).size() == 1 && text->completion_tokens() < 700,
        "a prompt of several steps does not wait for the text beside it");
  text->cancel();
}

// What grows seldom is seen after many steps. ThreadSanitizer looks for other things, and is slow.
#ifdef __SANITIZE_THREAD__
constexpr uint32_t kSteps = 16;
#else
constexpr uint32_t kSteps = 256;
#endif

// So many steps of each row class, and tokens through the scheduler, allocate nothing.
void test_no_allocation(const std::string& path) {
  Engine engine(path, 2);
  Device& device = engine.model->device();
  SequenceStore& store = engine.model->sequences();
  const std::vector<uint32_t> tokens = make_tokens(1024, engine.model->arch().vocab_size);
  SequenceCache cache(engine.model->cache(), store, true);
  const std::optional<uint32_t> sequence = cache.begin(1, tokens, 1024, 0);
  SequenceRecord record{};
  record.version = kSequenceRecordVersion;
  record.top_p = record.repetition_penalty = 1;
  device.write(store.record(*sequence), std::as_bytes(std::span(&record, 1)));
  device.write(store.log(*sequence, 0), std::as_bytes(std::span(tokens)));
  device.write(store.page_table(0, *sequence), std::as_bytes(std::span(store[*sequence].pages[0])));

  Step step(*engine.model);
  uint32_t status = 0;
  const auto steps = [&](uint32_t n_rows, bool prompt) {
    for (uint32_t i = 0; i < kSteps; ++i) {
      Row row{};
      row.sequence = *sequence;
      row.position = i;
      row.adapter = kNone;
      row.last_position = kNone;
      step.clear();
      if (prompt)
        step.add_prompt(row, n_rows, Step::Logits::last, false);
      else
        for (uint32_t r = 0; r < n_rows; ++r, ++row.position) {
          row.kv_length = row.position + 1;
          row.flags = kRowActive;
          step.add_generated(row);
        }
      status |= device.wait(step.submit(device, 1, true, false), kWait).status.code;
    }
  };
  check(count_allocations([&] { steps(1, false); }) == 0, "steps of single rows allocate nothing");
  check(count_allocations([&] { steps(4, false); }) == 0, "steps of few rows allocate nothing");
  check(count_allocations([&] { steps(20, true); }) == 0, "steps of many rows allocate nothing");
  check(status == kStatusOk, "and report nothing");
  cache.discard(*sequence);

  const auto generation =
      engine.scheduler.generate({.prompt = make_tokens(10, 1000),
                                 .max_tokens = kSteps + 1,
                                 .stop_ids = {},
                                 .sampling = {.temperature = 0.7f, .top_k = 50, .top_p = 0.9f}});
  std::array<uint32_t, 16> some;
  size_t n = generation->next(some, kWait);
  check(count_allocations([&] {
          for (size_t more = n; more > 0; n += more) more = generation->next(some, kWait);
        }) == 0,
        "tokens through the scheduler allocate nothing");
  check(n == kSteps + 1, "all tokens arrive");
  check(count_allocations([] {
          void* volatile pointer = std::malloc(3);
          std::free(pointer);
        }) == 1,
        "the hook sees allocations");
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  if (argc != 2) {
    std::fprintf(stderr, "usage: engine MODEL.gguf\n");
    return 2;
  }
  const std::string path = argv[1];
  test_row_invariance(path);
  test_fusion(path);
  test_batches(path);
  test_chains(path, 0);
  test_chains(path, 1);
  test_stop_and_limits(path);
  test_queue_and_close(path);
  test_prefixes(path);
  const std::vector<std::vector<uint32_t>> alone = texts_alone(path);
  test_side_by_side(path, alone, true, 1, 0);
  test_side_by_side(path, alone, false, 1, 1);
  test_side_by_side(path, alone, true, 8, 1);
  test_order(path);
  test_prompt_beside_text(path);
  test_no_allocation(path);
  return summary();
}
