// The line of tasks that wait: order, who passes whom, and how many may wait.
#include <string>
#include <vector>

#include "core/error.h"
#include "inference/generation.h"
#include "inference/queue.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

using Answer = Queue::Answer;

std::shared_ptr<Task> task_of(uint32_t name, int32_t priority = 0) {
  return std::make_shared<Generation>(GenerateRequest{
      .prompt = {name}, .max_tokens = 1, .stop_ids = {}, .sampling = {}, .priority = priority});
}

uint32_t name_of(const Task& task) { return task.rows().tokens[0]; }

// Names of the queued tasks in the order in which offer() shows them; `answer` gives the reply to each.
template <class ToAnswer>
std::vector<uint32_t> offered(Queue& queue, const ToAnswer& answer) {
  std::vector<uint32_t> names;
  queue.offer([&](const std::shared_ptr<Task>& task) {
    names.push_back(name_of(*task));
    return answer(name_of(*task));
  });
  return names;
}

void test_priority_goes_before_arrival() {
  Queue queue(10);
  queue.add(task_of(1));
  queue.add(task_of(2, 5));
  queue.add(task_of(3, -1));
  queue.add(task_of(4, 5));
  check(queue.empty(), "what came is not in line before it is collected");
  queue.collect();
  const auto taken = [](uint32_t) { return Answer::taken; };
  check(offered(queue, taken) == std::vector<uint32_t>{2, 4, 1, 3},
        "by priority, then as they came");
  check(queue.empty(), "who is taken leaves the line");
}

void test_who_waits_for_something_else_lets_others_pass() {
  Queue queue(10);
  for (uint32_t name = 1; name <= 4; ++name) queue.add(task_of(name));
  queue.collect();
  const auto answer = [](uint32_t name) {
    return name == 1 ? Answer::later : name == 3 ? Answer::full : Answer::taken;
  };
  check(offered(queue, answer) == std::vector<uint32_t>{1, 2, 3},
        "nobody is offered what there is no room for any more");
  const auto later = [](uint32_t) { return Answer::later; };
  check(offered(queue, later) == std::vector<uint32_t>{1, 3, 4}, "who was not taken stays");
}

void test_who_steps_back_has_its_place_again() {
  Queue queue(10);
  std::vector<std::shared_ptr<Task>> taken;
  queue.add(task_of(1));
  queue.add(task_of(2));
  queue.collect();
  queue.offer([&](const std::shared_ptr<Task>& task) {
    taken.push_back(task);
    return Answer::taken;
  });
  queue.add(task_of(3));
  queue.collect();
  queue.put_back(taken[1]);
  queue.put_back(taken[0]);
  check(offered(queue, [](uint32_t) { return Answer::later; }) == std::vector<uint32_t>{1, 2, 3},
        "before those that came after it");
}

void test_more_than_may_wait_are_refused() {
  Queue queue(2);
  queue.add(task_of(1));
  queue.collect();
  queue.add(task_of(2));
  check(contains(message_of<QueueFullError>([&] { queue.add(task_of(3)); }),
                 "2 requests are waiting already"),
        "one in line and one that came are two");
  const auto first = [](uint32_t name) { return name == 1 ? Answer::taken : Answer::full; };
  queue.collect();
  offered(queue, first);
  queue.add(task_of(4));
  check(!message_of<QueueFullError>([&] { queue.add(task_of(5)); }).empty(),
        "there is room for as many as left the line");
}

void test_what_is_over_leaves_the_line() {
  Queue queue(10);
  const std::shared_ptr<Task> cancelled = task_of(1), cut = task_of(2), waits = task_of(3);
  for (const auto& task : {cancelled, cut, waits}) queue.add(task);
  queue.collect();
  cancelled->cancel();
  queue.drop_cancelled();
  queue.cut({cut, 7});
  check(queue.has_news(), "a cut is news");
  const std::vector<Cut> cuts = queue.collect();
  check(cuts.size() == 1 && cuts[0].task == cut && cuts[0].n_chosen == 7 && !queue.has_news(),
        "which is handed over once");
  check(offered(queue, [](uint32_t) { return Answer::later; }) == std::vector<uint32_t>{3},
        "who was cancelled or cut is not in line");
  queue.close();
  for (const std::chrono::milliseconds timeout : {std::chrono::milliseconds(0), kWithoutLimit})
    check(!queue.wait(timeout), "a closed queue has nothing to wait for");
  check(contains(message_of<Error>([&] { queue.add(task_of(4)); }), "the model is closed"),
        "and takes nobody");
  queue.fail(std::make_exception_ptr(Error("closed")));
  check(queue.empty(), "who was left has failed");
}

void test_a_callback_tells_of_every_change() {
  Generation generation({.prompt = {1}, .max_tokens = 3, .stop_ids = {}, .sampling = {}});
  int n = 0;
  generation.on_change([&] { ++n; });
  check(n == 0, "nothing is there yet");
  const std::vector<uint32_t> tokens{4, 5};
  generation.take_tokens(tokens);
  check(n == 1, "two tokens at once are one change");
  generation.on_change({});
  generation.finish(FinishReason::stop);
  check(n == 1, "a callback that was taken back is not called");
  generation.on_change([&] { n += 10; });
  check(n == 11, "one that comes late is called at once");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_priority_goes_before_arrival();
  test_who_waits_for_something_else_lets_others_pass();
  test_who_steps_back_has_its_place_again();
  test_more_than_may_wait_are_refused();
  test_what_is_over_leaves_the_line();
  test_a_callback_tells_of_every_change();
  return summary();
}
