// What the end of a stage costs: workers that take slices as commands' are taken, and wait for each
// other, without a model.
//
//   cmake --build BUILD --target stage_cost && BUILD/backend/cpu/stage_cost 2 4 8 16 32
//
// For each number of workers, medians of several runs, in µs a stage:
//   bare      a slice for each worker, which nobody else may take: all wait for all
//   empty     four slices a worker, which others may take as well, with nothing in them
//   one       a stage of one slice behind each of those: what it adds
//   20 us     slices that add up to 20 µs for each worker: what comes on top of those
//   asleep    the first stage after 2 ms of rest, when the helpers sleep: until the job is over
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cpu/slice_shares.h"
#include "cpu/thread_pool.h"

namespace {

using Clock = std::chrono::steady_clock;
using akunu::cpu::Portion;
using akunu::cpu::SliceShares;
using akunu::cpu::ThreadPool;

constexpr uint32_t kStages = 200, kRuns = 31;

// Time that no compiler leaves out; one function, so that it takes as long wherever it is called.
[[gnu::noinline]] void compute(uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) asm volatile("" ::: "memory");
}

double loops_per_microsecond() {
  constexpr uint64_t kLoops = 1'000'000;
  double best = 0;
  for (int i = 0; i < 9; ++i) {
    const auto start = Clock::now();
    compute(kLoops);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    best = std::max(best, kLoops / took.count());
  }
  return best;
}

struct Stages {
  SliceShares shares;
  std::vector<uint64_t> n_slices;
  uint64_t loops = 0;  // of a slice

  static uint64_t work(void* context, uint32_t worker, uint32_t stage) {
    auto& stages = *static_cast<Stages*>(context);
    uint64_t n_done = 0;
    const auto take = [&] { return stages.shares.take(stage, worker, stages.n_slices[stage]); };
    for (Portion portion = take(); portion.begin < portion.end; portion = take()) {
      compute(stages.loops * (portion.end - portion.begin));
      n_done += portion.end - portion.begin;
    }
    return n_done;
  }
};

// Each worker runs the slice that is its own.
struct BareStages {
  std::vector<std::atomic<uint32_t>>
      next;  // stage that a worker has not been in yet, 64 bytes apart

  static uint64_t work(void* context, uint32_t worker, uint32_t stage) {
    std::atomic<uint32_t>& next = static_cast<BareStages*>(context)->next[worker * 16];
    if (next.load(std::memory_order_relaxed) > stage) return 0;
    next.store(stage + 1, std::memory_order_relaxed);
    return 1;
  }
};

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

double run_bare(ThreadPool& pool) {
  const std::vector<uint64_t> n_slices(kStages, pool.n_workers());
  std::vector<double> times;
  for (uint32_t i = 0; i < kRuns; ++i) {
    BareStages stages{std::vector<std::atomic<uint32_t>>(pool.n_workers() * size_t{16})};
    const auto start = Clock::now();
    pool.run(BareStages::work, &stages, n_slices);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return median(times);
}

// Median of the microseconds that a run of all stages takes.
double run(ThreadPool& pool, std::vector<uint64_t> n_slices, uint64_t loops, bool rest) {
  Stages stages{.shares = {}, .n_slices = std::move(n_slices), .loops = loops};
  stages.shares.reserve(stages.n_slices.size(), pool.n_workers());
  std::vector<double> times;
  for (uint32_t i = 0; i < kRuns; ++i) {
    if (rest) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    stages.shares.begin_step();
    const auto start = Clock::now();
    pool.run(Stages::work, &stages, stages.n_slices);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return median(times);
}

// Microseconds of a stage whose workers compute for 20 and wait for nobody.
double alone(uint64_t loops_of_slice) {
  ThreadPool pool(1);
  return run(pool, std::vector<uint64_t>(kStages, 4), loops_of_slice, false) / kStages;
}

void measure(uint32_t n_workers, double loops) {
  ThreadPool pool(n_workers);
  const double bare = n_workers == 1 ? 0 : run_bare(pool) / kStages;
  const uint64_t n = uint64_t{4} * n_workers;
  const double empty = run(pool, std::vector<uint64_t>(kStages, n), 0, false) / kStages;
  std::vector<uint64_t> mixed;
  for (uint32_t i = 0; i < kStages; ++i) mixed.insert(mixed.end(), {n, 1});
  const double one = run(pool, mixed, 0, false) / kStages - empty;
  const auto slice = static_cast<uint64_t>(5 * loops);
  const double busy =
      run(pool, std::vector<uint64_t>(kStages, n), slice, false) / kStages - alone(slice);
  const double asleep = run(pool, {n}, slice, true);
  std::printf("%7u %8.2f %8.2f %8.2f %8.2f %8.1f\n", n_workers, bare, empty, one, busy, asleep);
}

}  // namespace

int main(int argc, char** argv) {
  const double loops = loops_per_microsecond();
  std::printf("workers     bare    empty      one    20 us   asleep\n");
  for (int i = 1; i < argc; ++i) measure(static_cast<uint32_t>(std::atoi(argv[i])), loops);
  return 0;
}
