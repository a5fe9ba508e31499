// The scheduler driver: texts and prompts of the packaged model beside each other, in queues and from caches. Each
// is what it would be alone. Runs plain and under ASan, UBSan and TSan.
//   scheduler [--hidden-memory] MODEL.gguf
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "core/error.h"
#include "unit/engine.h"

namespace akunu::test {
namespace {

// Text does not depend on what else is under way.
void test_batches(const std::string& path) {
  Engine engine(path, 2);
  std::vector<std::vector<uint32_t>> alone;
  const auto request = [&](uint32_t i) {
    return GenerateRequest{
        .prompt = make_tokens(20 + 70 * i, engine.model->context.arch().vocab_size, i + 1),
        .max_tokens = 24,
        .stop_ids = {},
        .sampling = {.temperature = i == 1 ? 0.8f : 0.0f, .top_k = 40, .seed_low = 7}};
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

void test_stop_and_limits(const std::string& path) {
  Engine engine(path, 1, 300);
  const std::vector<uint32_t> prompt = make_tokens(40, engine.model->context.arch().vocab_size);
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
  const uint32_t vocab_size = cold.model->context.arch().vocab_size;
  for (const uint32_t n_shared : {1u, 255u, 256u, 257u, 512u}) {
    std::vector<uint32_t> tokens = make_tokens(n_shared, vocab_size, n_shared);
    const auto first = warm.scheduler.generate(
        {.prompt = tokens, .max_tokens = 3, .stop_ids = {}, .sampling = {}});
    collect(*first);
    check(first->n_cached() <= 2, "random tokens share no more than the first few");
    const std::vector<uint32_t> rest = make_tokens(40, vocab_size, n_shared + 1);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    const auto second = warm.scheduler.generate(
        {.prompt = tokens, .max_tokens = 3, .stop_ids = {}, .sampling = {}});
    collect(*second);
    check(second->n_cached() >= n_shared, "a prefix is taken over");
    const auto last = static_cast<uint32_t>(tokens.size()) - 1;
    check(same_bits(logits_of(warm, tokens, {}, false, last),
                    last_rows(logits_of(cold, tokens, {}, false), 1, vocab_size)),
          "logits after a prefix from the cache are those without");
  }
}

// Counts the rows that it is sent.
class CountingDevice final : public DeviceVariant {
 public:
  CountingDevice() : DeviceVariant(create_cpu(2), true, 1) {}
  Ticket submit(const Replay& replay) override {
    n_rows += replay.rows.size();
    return DeviceVariant::submit(replay);
  }
  std::atomic<size_t> n_rows{0};
};

// What a text says that it took over is exactly what was not computed.
void test_cached_positions_are_counted(const std::string& path) {
  const auto device = std::make_shared<CountingDevice>();
  Engine engine(path, device);
  const uint32_t vocab_size = engine.model->context.arch().vocab_size;
  const std::vector<uint32_t> first = make_tokens(600, vocab_size, 8);
  for (const uint32_t n_shared : {0u, 1u, 255u, 256u, 300u, 599u}) {
    std::vector<uint32_t> tokens(first.begin(), first.begin() + n_shared);
    const uint32_t next = (first[n_shared] + 1) % vocab_size;
    tokens.insert(tokens.end(), 40, next);
    for (const std::vector<uint32_t>& each : {first, tokens, tokens}) {
      device->n_rows = 0;
      const auto task = engine.scheduler.logits({.tokens = each,
                                                 .first = static_cast<uint32_t>(each.size()) - 1,
                                                 .chunks = {},
                                                 .generated = false});
      check(task->wait(kWait), "logits arrive");
      check(device->n_rows == each.size() - task->n_cached(),
            "rows of " + std::to_string(each.size()) + " tokens, with " +
                std::to_string(task->n_cached()) + " cached");
      check(task->prefix_end() != PrefixEnd::untold, "and the reason is told");
    }
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
          .sampling = {.temperature = 2.0f, .frequency_penalty = 0.1f, .seed_low = i}};
}

constexpr uint32_t kTexts = 4;
constexpr uint32_t kContext =
    kShort ? 300 : 400;  // two pages, where a text has one and then another

std::vector<std::vector<uint32_t>> texts_alone(const std::string& path) {
  Engine engine(path, 2, kContext, false);
  std::vector<std::vector<uint32_t>> alone;
  for (uint32_t i = 0; i < kTexts; ++i)
    alone.push_back(collect(*engine.scheduler.generate(open_ended(i))));
  return alone;
}

// They run side by side in a pool that holds one of them, also while others come and go: each is the
// one alone, each ends.
void test_side_by_side(const std::string& path, const std::vector<std::vector<uint32_t>>& alone,
                       bool prefix_cache, uint32_t chain_steps, uint32_t submissions_ahead) {
  const auto device =
      std::make_shared<DeviceVariant>(create_cpu(2), true, chain_steps, submissions_ahead);
  Engine engine(path, device, kContext, prefix_cache);
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
      const size_t n = generation->next(some, std::chrono::milliseconds(i % 5)).value_or(0);
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
  check(oldest->completion_tokens() == 40 && waiting->n_given_done() == 300,
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

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  const std::string path = model_of(argc, argv);
  if (path.empty()) return 2;
  test_batches(path);
  test_stop_and_limits(path);
  test_queue_and_close(path);
  test_prefixes(path);
  test_cached_positions_are_counted(path);
  const std::vector<std::vector<uint32_t>> alone = texts_alone(path);
  test_side_by_side(path, alone, true, 1, 0);
  test_side_by_side(path, alone, false, 1, 1);
  test_side_by_side(path, alone, true, 8, 1);
  test_order(path);
  test_prompt_beside_text(path);
  return summary();
}
