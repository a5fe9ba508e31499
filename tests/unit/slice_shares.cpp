// Slices of commands, taken by several workers at once: each exactly once, whoever comes, step after
// step. Runs plain and under TSan.
#include "cpu/slice_shares.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "unit/check.h"

namespace akunu::test {
namespace {

using cpu::Portion;
using cpu::SliceShares;

// How often each slice of a command was taken by `workers` that take turns as they can.
std::vector<uint32_t> taken(SliceShares& shares, size_t command,
                            const std::vector<uint32_t>& workers, uint64_t n_slices,
                            uint64_t at_once = 1) {
  std::vector<std::atomic<uint32_t>> counts(n_slices);
  std::vector<std::thread> threads;
  for (const uint32_t worker : workers)
    threads.emplace_back([&, worker] {
      const auto take = [&] { return shares.take(command, worker, n_slices, at_once); };
      for (Portion portion = take(); portion.begin < portion.end; portion = take())
        for (uint64_t slice = portion.begin; slice < portion.end; ++slice)
          counts.at(slice).fetch_add(1, std::memory_order_relaxed);
    });
  for (std::thread& thread : threads) thread.join();
  return {counts.begin(), counts.end()};
}

void test_each_slice_is_taken_once() {
  constexpr uint32_t kWorkers = 4;
  constexpr size_t kCommands = 3;
  SliceShares shares;
  shares.reserve(kCommands, kWorkers);
  // Also of workers that never come, and of more slices than a share can count one by one.
  for (const std::vector<uint32_t>& workers : {std::vector<uint32_t>{0, 1, 2, 3}, {0}, {3}, {1, 2}})
    for (const uint64_t n_slices : {0u, 1u, 3u, 4u, 64u, 1000u, 2'500'000u})
      for (uint32_t step = 0; step < (n_slices > 1000 ? 1u : 20u); ++step) {
        shares.begin_step();
        for (size_t command = 0; command < kCommands; ++command) {
          const uint64_t at_once = uint64_t{1} << 2 * command;
          check(taken(shares, command, workers, n_slices, at_once) ==
                    std::vector<uint32_t>(n_slices, 1),
                std::to_string(workers.size()) + " workers take " + std::to_string(n_slices) +
                    " slices once each, " + std::to_string(at_once) + " at once");
        }
      }
}

void test_a_worker_begins_with_its_own_share_in_order() {
  constexpr uint32_t kWorkers = 2;
  SliceShares shares;
  shares.reserve(1, kWorkers);
  shares.begin_step();
  uint64_t next = 32;  // the second half of 64
  for (Portion portion = shares.take(0, 1, 64); portion.begin >= 32;
       portion = shares.take(0, 1, 64)) {
    check(portion.begin == next, "slices of a share follow each other");
    next = portion.end;
    if (next == 64) break;
  }
  check(next == 64, "a worker begins with its own share");
  // What comes then is the upper half of what the other one has.
  check(shares.take(0, 1, 64).begin == 16, "then it takes over half of another one");
  check(shares.take(0, 0, 64).begin == 0, "which goes on where it was");
}

uint64_t length(const Portion& portion) { return portion.end - portion.begin; }

void test_slices_that_go_together_are_taken_together() {
  SliceShares shares;
  shares.reserve(1, 2);
  shares.begin_step();
  std::vector<uint64_t> lengths;
  for (Portion portion = shares.take(0, 0, 80, 8); portion.begin < 40 && length(portion) > 0;
       portion = shares.take(0, 0, 80, 8))
    lengths.push_back(length(portion));
  check(lengths == std::vector<uint64_t>{16, 8, 8, 8}, "a share of 40 is taken in whole eights");
}

void test_fewer_slices_than_go_together_are_shared_by_all() {
  constexpr uint32_t kWorkers = 16;
  SliceShares shares;
  shares.reserve(1, kWorkers);
  shares.begin_step();
  for (uint32_t worker = 0; worker < kWorkers; ++worker)
    check(length(shares.take(0, worker, 32, 8)) == 2, "32 slices are two for each of 16 workers");
  check(length(shares.take(0, 0, 32, 8)) == 0, "and nothing is left");
}

void test_a_share_that_goes_together_is_halved_for_who_comes_first() {
  SliceShares shares;
  shares.reserve(1, 2);
  shares.begin_step();
  check(length(shares.take(0, 0, 12, 8)) == 6, "the first worker's share");
  check(length(shares.take(0, 0, 12, 8)) == 3, "half of that of a worker who has not come");
  check(length(shares.take(0, 1, 12, 8)) == 3, "which finds the other half");
}

// Words keep the number of a step in 24 bits.
void test_steps_are_told_apart_when_their_number_begins_anew() {
  SliceShares shares;
  shares.reserve(1, 2);
  shares.begin_step();
  const std::vector<uint32_t> once(10, 1);
  check(taken(shares, 0, {0, 1}, 10) == once, "slices of the first step");
  for (uint32_t step = 0; step < (1u << 24) - 1; ++step) shares.begin_step();
  check(taken(shares, 0, {0, 1}, 10) == once, "slices of a step with the same number");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_each_slice_is_taken_once();
  test_a_worker_begins_with_its_own_share_in_order();
  test_slices_that_go_together_are_taken_together();
  test_fewer_slices_than_go_together_are_shared_by_all();
  test_a_share_that_goes_together_is_halved_for_who_comes_first();
  test_steps_are_told_apart_when_their_number_begins_anew();
  return summary();
}
