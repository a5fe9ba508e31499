// The composer driver: what runs together in a step of the packaged model, who waits for whom, and
// that each is what it would be alone. Runs plain and under ASan, UBSan and TSan.
//   composer MODEL.gguf
#include <algorithm>
#include <array>

#include "core/error.h"
#include "unit/held_device.h"

namespace akunu::test {
namespace {

std::vector<uint32_t> with(std::vector<uint32_t> tokens, const std::vector<uint32_t>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// 64 texts that generate at once, in four groups of rows; each is the one alone.
void test_sixty_four_texts(const std::string& path) {
  Held engine(path);
  const auto request = [&](uint32_t i) {
    return GenerateRequest{.prompt = make_tokens(3 + i % 5, 1000, i),
                           .max_tokens = kShort ? 3 : 6,
                           .stop_ids = {},
                           .sampling = {.temperature = 2.0f, .seed_low = i}};
  };
  constexpr uint32_t kEvery = kShort ? 7 : 1;  // so many of them are also generated alone
  std::vector<std::vector<uint32_t>> alone;
  for (uint32_t i = 0; i < 70; i += kEvery)
    alone.push_back(collect(*engine.scheduler.generate(request(i))));
  const size_t before = engine.device->most_rows();
  engine.begin();
  std::vector<std::shared_ptr<Generation>> together;
  for (uint32_t i = 0; i < 70; ++i) together.push_back(engine.scheduler.generate(request(i)));
  const auto logits = engine.scheduler.logits(
      {.tokens = make_tokens(30, 1000), .first = 0, .chunks = {}, .generated = false});
  engine.device->hold(false);
  for (uint32_t i = 0; i < 70; ++i) {
    const std::vector<uint32_t> text = collect(*together[i]);
    check(i % kEvery != 0 || text == alone[i / kEvery], "a text among 64 is the one alone");
  }
  check(before < 16 && engine.device->most_rows() >= 64, "64 ran side by side");
  check(engine.device->most_passes() >= 2 * 4 + 1, "in groups");
  check(logits->wait(kWait), "logits come beside them");
  const std::unique_ptr<float[]> values = logits->take();
  Engine other(path, 1);
  const std::vector<float> expected = logits_of(other, make_tokens(30, 1000), {}, false);
  check(std::equal(expected.begin(), expected.end(), values.get()), "and are those alone");
}

void test_a_short_prompt_does_not_wait_for_a_long_one(const std::string& path) {
  Held engine(path, 64);
  const auto first = engine.begin();
  const auto longer = engine.ask(make_tokens(kShort ? 500 : 900, 1000, 1), 1);
  const auto shorter = engine.ask(make_tokens(20, 1000, 2), 1);
  std::vector<uint32_t> done;
  shorter->on_change([&] { done.push_back(longer->n_given_done()); });
  engine.device->hold(false);
  collect(*shorter);
  shorter->on_change({});
  check(!done.empty() && done[0] < 200, "it runs in the same steps");
  check(collect(*longer).size() == 1, "and the long one goes on");
}

// A short prompt behind them goes first.
void test_prompts_of_one_length_are_done_one_after_the_other(const std::string& path) {
  Held engine(path, 64);
  const auto first = engine.begin();
  std::vector<std::shared_ptr<Generation>> prompts;
  for (uint32_t i = 0; i < 4; ++i) prompts.push_back(engine.ask(make_tokens(128, 1000, i), 1));
  const auto shorter = engine.ask(make_tokens(20, 1000, 9), 1);
  uint32_t of_short = UINT32_MAX, of_last = UINT32_MAX;
  shorter->on_change([&] { of_short = std::min(of_short, prompts[0]->n_given_done()); });
  prompts[1]->on_change([&] { of_last = std::min(of_last, prompts[3]->n_given_done()); });
  engine.device->hold(false);
  for (const auto& prompt : prompts) check(collect(*prompt).size() == 1, "all are done");
  collect(*shorter);
  shorter->on_change({});
  prompts[1]->on_change({});
  check(of_short < 128, "the short one is done before the first");
  check(of_last < 64, "the last has hardly begun when the second is done");
}

// Steps of a text beside two prompts, with so many prompt rows in a step where more texts wait than generate.
uint32_t steps_beside_two_prompts(const std::string& path, uint32_t n_prompt, uint32_t crowded) {
  Held engine(path, 512, 32, 1 << 30, {}, crowded);
  const auto text = engine.ask(make_tokens(5, 1000, 3), 200);
  std::array<uint32_t, 1> some;
  text->next(some, kWait);
  engine.device->hold(true);
  const uint32_t before = text->completion_tokens();
  const auto one = engine.ask(make_tokens(n_prompt, 1000, 4), 1);
  const auto two = engine.ask(make_tokens(n_prompt, 1000, 5), 1);
  uint32_t after = 0;
  two->on_change([&] { after = std::max(after, text->completion_tokens()); });
  engine.device->hold(false);
  collect(*one);
  collect(*two);
  two->on_change({});
  text->cancel();
  return after - before;
}

void test_texts_go_on_beside_prompts(const std::string& path) {
  constexpr uint32_t kPrompt = kShort ? 160 : 320;
  // Rows of two prompts, 32 in a step.
  const uint32_t steps = steps_beside_two_prompts(path, kPrompt, 0);
  check(steps >= 2 * kPrompt / 32 - 1, "a text has a row in every step of the prompts beside it");
  check(steps_beside_two_prompts(path, kPrompt, 512) < steps / 2,
        "steps are longer where it is one that two wait for");
}

void test_the_more_important_prompt_goes_first(const std::string& path) {
  Held engine(path, 64);
  const auto first = engine.begin();
  constexpr uint32_t kPrompt = kShort ? 256 : 640;
  const auto usual = engine.ask(make_tokens(kPrompt, 1000, 1), 1);
  const auto urgent = engine.ask(make_tokens(kPrompt, 1000, 2), 1, 1);
  uint32_t done = UINT32_MAX;
  urgent->on_change([&] { done = std::min(done, usual->n_given_done()); });
  engine.device->hold(false);
  collect(*urgent);
  urgent->on_change({});
  check(done < 64, "it has all rows of the steps");
  check(collect(*usual).size() == 1, "the other one comes after it");
}

// What two prompts have in common is computed once where it is long, and side by side where not.
void test_a_shared_prefix_is_worth_waiting_for(const std::string& path) {
  for (const uint32_t n_shared : {255u, 256u, 400u}) {
    if (kShort && n_shared == 400) continue;
    Held engine(path, 64);
    const std::vector<uint32_t> shared = make_tokens(n_shared, 1000, 7);
    const auto first = engine.begin();
    const auto one = engine.ask(with(shared, make_tokens(kShort ? 100 : 300, 1000, 8)), 2);
    const auto two = engine.ask(with(shared, make_tokens(40, 1000, 9)), 2);
    const auto other = engine.ask(make_tokens(10, 1000, 10), 1);
    uint32_t other_saw = UINT32_MAX;
    other->on_change([&] { other_saw = std::min(other_saw, one->n_given_done()); });
    engine.device->hold(false);
    const std::vector<uint32_t> text = collect(*two);
    collect(*other);
    other->on_change({});
    check(n_shared < 256 ? two->n_cached() < 64 : two->n_cached() >= n_shared,
          "a page or more is waited for, less is not: " + std::to_string(n_shared));
    check(other_saw < n_shared, "who shares nothing does not wait");
    Held alone(path, 64);
    check(collect(*alone.ask(with(shared, make_tokens(40, 1000, 9)), 2)) == text,
          "the text is the same");
  }
}

void test_a_full_queue_refuses(const std::string& path) {
  Held engine(path, 512, 64, 1 << 30, {.prefix_cache = true, .most_waiting = 3});
  const auto first = engine.begin();
  std::vector<std::shared_ptr<Generation>> waiting;
  for (uint32_t i = 0; i < 3; ++i) waiting.push_back(engine.ask({i + 1}, 1));
  check(contains(message_of<QueueFullError>([&] { engine.ask({9}, 1); }), "3 requests"),
        "the fourth that waits is refused");
  engine.device->hold(false);
  for (const auto& each : waiting) check(collect(*each).size() == 1, "those that wait are served");
  check(collect(*engine.ask({9}, 1)).size() == 1, "and later there is room again");
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  if (argc != 2) {
    std::fprintf(stderr, "usage: composer MODEL.gguf\n");
    return 2;
  }
  const std::string path = argv[1];
  test_sixty_four_texts(path);
  test_a_short_prompt_does_not_wait_for_a_long_one(path);
  test_prompts_of_one_length_are_done_one_after_the_other(path);
  test_texts_go_on_beside_prompts(path);
  test_the_more_important_prompt_goes_first(path);
  test_a_shared_prefix_is_worth_waiting_for(path);
  test_a_full_queue_refuses(path);
  return summary();
}
