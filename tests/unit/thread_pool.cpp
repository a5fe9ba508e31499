// The thread pool by itself: every stage in order, none before the one ahead of it has ended, and
// nobody waits for a worker that has nothing to do. Runs plain and under TSan.
#include "cpu/thread_pool.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit/check.h"

namespace akunu::test {
namespace {

using cpu::ThreadPool;

// Workers take items of a stage; an item adds up what the stage before left, in plain memory: a
// stage that began too early is a race and a wrong sum.
struct Sums {
  explicit Sums(uint32_t n_stages, uint32_t n_items)
      : n_items_per_stage(n_items), taken(n_stages), values((n_stages + 1) * size_t{n_items}, 1) {}

  static uint64_t work(void* context, uint32_t, uint32_t stage) {
    auto& sums = *static_cast<Sums*>(context);
    const uint32_t n = sums.n_items_per_stage;
    const uint64_t* before = sums.values.data() + size_t{stage} * n;
    uint64_t* after = sums.values.data() + size_t{stage + 1} * n;
    uint64_t n_done = 0;
    for (uint32_t i = sums.taken[stage].fetch_add(1, std::memory_order_relaxed); i < n;
         i = sums.taken[stage].fetch_add(1, std::memory_order_relaxed), ++n_done) {
      uint64_t sum = i;
      for (uint32_t j = 0; j < n; ++j) sum += before[j] % 1000;
      after[i] = sum;
    }
    return n_done;
  }

  uint32_t n_items_per_stage;
  std::vector<std::atomic<uint32_t>> taken;
  std::vector<uint64_t> values;
};

void test_stages_see_what_the_stage_before_wrote(uint32_t n_workers) {
  ThreadPool pool(n_workers);
  bool same = true;
  for (const uint32_t n_items : {1u, 2u, 7u, 40u}) {
    constexpr uint32_t kStages = 50;
    Sums alone(kStages, n_items);
    for (uint32_t stage = 0; stage < kStages; ++stage) Sums::work(&alone, 0, stage);
    const std::vector<uint64_t> n_slices(kStages, n_items);
    for (uint32_t round = 0; round < 100; ++round) {
      Sums together(kStages, n_items);
      pool.run(Sums::work, &together, n_slices);
      same &= together.values == alone.values;
    }
  }
  check(same, "stages follow one another with " + std::to_string(n_workers) + " workers");
}

// Twenty stages before the gate's word begins again at 0.
void test_the_number_of_stages_may_wrap_around() {
  ThreadPool pool(3, {}, 0u - 40);
  Sums expected(15, 9);
  for (uint32_t stage = 0; stage < 15; ++stage) Sums::work(&expected, 0, stage);
  const std::vector<uint64_t> n_slices(15, 9);
  bool same = true;
  for (int job = 0; job < 4; ++job) {
    Sums sums(15, 9);
    pool.run(Sums::work, &sums, n_slices);
    same &= sums.values == expected.values;
  }
  check(same, "numbers of stages that wrap around change nothing");
}

// Each stage of one slice is one call of the job, by one worker: the others are not told of it.
void test_a_stage_of_one_slice_is_one_call() {
  ThreadPool pool(3);
  struct Calls {
    std::array<std::atomic<uint32_t>, 7> n{};
    std::array<std::atomic<uint32_t>, 7> taken{};
    std::array<uint64_t, 7> n_slices{1, 1, 6, 1, 1, 6, 1};
  };
  bool alone = true;
  for (int job = 0; job < 200; ++job) {
    Calls calls;
    pool.run(
        [](void* context, uint32_t, uint32_t stage) {
          auto& c = *static_cast<Calls*>(context);
          c.n[stage].fetch_add(1);
          uint64_t n_done = 0;
          while (c.taken[stage].fetch_add(1) < c.n_slices[stage]) ++n_done;
          return n_done;
        },
        &calls, calls.n_slices);
    for (const size_t stage : {0, 1, 3, 4, 6}) alone &= calls.n[stage] == 1;
  }
  check(alone, "a stage of one slice is one call");
}

void test_jobs_may_come_from_any_thread() {
  ThreadPool pool(3);
  Sums expected(5, 9);
  for (uint32_t stage = 0; stage < 5; ++stage) Sums::work(&expected, 0, stage);
  const std::vector<uint64_t> n_slices(5, 9);
  bool same = true;
  for (int i = 0; i < 20; ++i) {
    std::thread caller([&] {
      Sums sums(5, 9);
      pool.run(Sums::work, &sums, n_slices);
      same &= sums.values == expected.values;
    });
    caller.join();
  }
  check(same, "one thread after the other may run jobs");
  pool.run(Sums::work, &expected, {});
  check(true, "a job without stages is none");
}

#if defined(__linux__)
std::atomic<bool> parked{false};
std::atomic<bool> parking{false};

void park(int) {
  parked.store(true);
  while (parking.load()) {
    const timespec nap{0, 1'000'000};
    nanosleep(&nap, nullptr);
  }
  parked.store(false);
}

pid_t thread_named(const std::string& wanted) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && name == wanted) return std::stoi(task.path().filename());
  }
  return 0;
}

// As if the system had given the helper's processor to another program. (A signal that reports a
// fault is the one thing that reaches a helper.)
void test_a_helper_that_does_not_get_to_run_holds_up_nobody() {
  ThreadPool pool(2);
  const std::vector<uint64_t> n_slices(20, 4);
  Sums first(20, 4);
  pool.run(Sums::work, &first, n_slices);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it sleeps, outside every stage

  struct sigaction action{}, before{};
  action.sa_handler = park;
  sigaction(SIGFPE, &action, &before);
  parking.store(true);
  pid_t helper = 0;
  while ((helper = thread_named("akunu-1")) == 0) std::this_thread::yield();
  syscall(SYS_tgkill, getpid(), helper, SIGFPE);
  while (!parked.load()) std::this_thread::yield();

  alarm(60);  // a job that waits for the helper would wait for ever
  bool same = true;
  for (int i = 0; i < 100; ++i) {
    Sums sums(20, 4);
    pool.run(Sums::work, &sums, n_slices);
    same &= sums.values == first.values;
  }
  alarm(0);
  check(same && parked.load(), "jobs end while a helper cannot run");
  parking.store(false);
  while (parked.load()) std::this_thread::yield();
  Sums last(20, 4);
  pool.run(Sums::work, &last, n_slices);
  check(last.values == first.values, "and it comes back");
  sigaction(SIGFPE, &before, nullptr);
}
#endif

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  for (const uint32_t n_workers : {1u, 2u, 3u, 5u})
    test_stages_see_what_the_stage_before_wrote(n_workers);
  test_the_number_of_stages_may_wrap_around();
  test_a_stage_of_one_slice_is_one_call();
  test_jobs_may_come_from_any_thread();
#if defined(__linux__)
  test_a_helper_that_does_not_get_to_run_holds_up_nobody();
#endif
  return summary();
}
