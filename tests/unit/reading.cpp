// Test driver of the scheduler's idle work: it reads finished replies again as prompts, stops that at
// once when a request comes, and uses what was read as a prefix. Also runs under ASan, UBSan and TSan.
//   reading MODEL.gguf
#include <algorithm>

#include "core/error.h"
#include "unit/held_device.h"

namespace akunu::test {
namespace {

constexpr uint32_t kShortStep = 16;  // rows of a step that somebody may come to wait for

Held make_engine(const std::string& path, const SchedulerOptions& options = {}) {
  return Held(path, 512, kShortStep, 1 << 30, options);
}

std::vector<uint32_t> joined(std::vector<uint32_t> a, const std::vector<uint32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool is_reading(const HeldDevice::Submission& submission) {
  return submission.priority == INT32_MIN;
}

size_t n_read(std::span<const HeldDevice::Submission> submissions) {
  size_t n = 0;
  for (const HeldDevice::Submission& each : submissions) n += is_reading(each) ? each.n_rows : 0;
  return n;
}

// Holds the device in the first step that reads the text that ended before.
size_t hold_in_reading(HeldDevice& device) {
  device.hold(true);
  while (!is_reading(device.submissions().back())) std::this_thread::yield();
  return device.submissions().size();
}

void test_what_was_generated_counts_once_it_was_read(const std::string& path) {
  Held engine = make_engine(path);
  const std::vector<uint32_t> prompt = make_tokens(300, 1000);
  const std::vector<uint32_t> text = collect(*engine.ask(prompt, 60));
  check(engine.scheduler.wait_until_idle(kWait), "it is read");
  const auto submissions = engine.device->submissions();
  check(n_read(submissions) == 60, "and only what was generated is");
  check(std::ranges::all_of(submissions,
                            [](const HeldDevice::Submission& each) {
                              return !is_reading(each) || each.n_rows <= kShortStep;
                            }),
        "in short steps");
  const std::vector<uint32_t> next = joined(joined(prompt, text), make_tokens(30, 1000, 2));
  const auto again = engine.ask(next, 40);
  const std::vector<uint32_t> second = collect(*again);
  check(again->n_cached() == 360, "the next prompt takes over all of it");
  Engine cold(path, 2, 1024, false);
  check(collect(*cold.scheduler.generate(
            {.prompt = next, .max_tokens = 40, .stop_ids = {}, .sampling = {}})) == second,
        "and its text is the one of a cold cache");
}

void test_whoever_comes_waits_for_one_short_step(const std::string& path) {
  Held engine = make_engine(path);
  const std::vector<uint32_t> prompt = make_tokens(50, 1000);
  const std::vector<uint32_t> text = collect(*engine.ask(prompt, 100));
  const size_t before = hold_in_reading(*engine.device);
  const auto newcomer = engine.ask(make_tokens(7, 1000, 5), 4);
  engine.device->hold(false);
  collect(*newcomer);
  const auto submissions = engine.device->submissions();
  check(submissions[before - 1].n_rows == kShortStep, "a step was under way");
  check(submissions[before].n_rows == 7 && !is_reading(submissions[before]),
        "the next one is the newcomer's");
  check(engine.scheduler.wait_until_idle(kWait), "then the reading goes on");
  check(n_read(engine.device->submissions()) == 100 + 4, "from where it was");
  const auto again = engine.ask(joined(prompt, text), 1);
  collect(*again);
  check(again->n_cached() == 149, "and comes to its end");
}

// The next turn comes before the reply was read: what it needs it reads itself.
void test_a_conversation_that_goes_on_at_once(const std::string& path) {
  Held engine = make_engine(path);
  const std::vector<uint32_t> prompt = make_tokens(50, 1000);
  const std::vector<uint32_t> text = collect(*engine.ask(prompt, 100));
  const size_t before = hold_in_reading(*engine.device);
  const auto next = engine.ask(joined(joined(prompt, text), {1, 2, 3}), 1);
  engine.device->hold(false);
  collect(*next);
  check(next->n_cached() == 50 + kShortStep, "it has what was read so far");
  check(engine.scheduler.wait_until_idle(kWait), "there is no more to do");
  const auto submissions = engine.device->submissions();
  check(n_read(std::span(submissions).subspan(before)) == 1, "than to read its one token");
}

void test_closing_waits_for_one_step(const std::string& path) {
  Held engine = make_engine(path);
  collect(*engine.ask(make_tokens(50, 1000), 100));
  const size_t before = hold_in_reading(*engine.device);
  std::thread closing([&] { engine.scheduler.stop(); });
  while (message_of<Error>([&] { engine.ask({1}, 1)->cancel(); }).empty())
    std::this_thread::yield();  // until it is closed
  engine.device->hold(false);
  closing.join();
  check(engine.device->submissions().size() == before, "nothing is read any more");
}

void test_other_models_go_first(const std::string& path) {
  Held engine = make_engine(path);
  engine.device->used_by_others = true;
  collect(*engine.ask(make_tokens(50, 1000), 20));
  const uint32_t before = engine.device->n_asked();
  while (engine.device->n_asked() < before + 3) std::this_thread::yield();
  check(n_read(engine.device->submissions()) == 0, "nothing is read while others use the device");
  engine.device->used_by_others = false;
  check(engine.scheduler.wait_until_idle(kWait), "but when they do not");
  check(n_read(engine.device->submissions()) == 20, "all of it");
}

void test_what_is_not_worth_reading(const std::string& path) {
  {
    Held engine = make_engine(path, {.prefix_cache = false});
    collect(*engine.ask(make_tokens(50, 1000), 20));
    check(engine.scheduler.wait_until_idle(kWait) && n_read(engine.device->submissions()) == 0,
          "without prefixes nothing is read");
  }
  Held engine = make_engine(path);
  engine.device->hold(true);
  const auto cancelled = engine.ask(make_tokens(900, 1000), 20);
  while (engine.device->submissions().empty()) std::this_thread::yield();
  cancelled->cancel();
  engine.device->hold(false);
  collect(*cancelled);
  check(engine.scheduler.wait_until_idle(kWait) && n_read(engine.device->submissions()) == 0,
        "nor the rest of a prompt that nobody wants any more");
  engine.device->used_by_others = true;  // so that it waits
  const auto text = engine.ask(make_tokens(50, 1000, 3), 40);
  collect(*text);
  engine.scheduler.cut(text, 10);
  const uint32_t before = engine.device->n_asked();
  while (engine.device->n_asked() < before + 2) std::this_thread::yield();
  engine.device->used_by_others = false;
  check(engine.scheduler.wait_until_idle(kWait) && n_read(engine.device->submissions()) == 10,
        "nor what was cut off");
}

}  // namespace
}  // namespace akunu::test

int main(int argc, char** argv) {
  using namespace akunu::test;
  const std::string path = model_of(argc, argv);
  if (path.empty()) return 2;
  test_what_was_generated_counts_once_it_was_read(path);
  test_whoever_comes_waits_for_one_short_step(path);
  test_a_conversation_that_goes_on_at_once(path);
  test_closing_waits_for_one_step(path);
  test_other_models_go_first(path);
  test_what_is_not_worth_reading(path);
  return summary();
}
