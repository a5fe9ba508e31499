// Workers that run one job together, in stages. The thread that calls `run` is worker 0; the others
// are helpers that spin for about 50 µs after a job and then sleep.
//
// A stage is over when its slices are done, whoever did them. A helper that the system gives to
// another program meanwhile holds up the others only if it was in the middle of a slice.
//
// Threads: `run` may be called from any thread, by one at a time. After fork() the child has no
// helpers: it must neither run a job nor destroy the pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "cpu/numa.h"
#include "cpu/wait_word.h"

namespace akunu::cpu {

class ThreadPool {
 public:
  // May throw std::system_error, when the system gives no thread. With `nodes`, each helper stays on
  // the processors of one; the caller's thread is its own master. `first_gate`: tests begin just
  // before the numbers of stages wrap around.
  explicit ThreadPool(uint32_t n_workers, std::vector<MemoryNode> nodes = {},
                      uint32_t first_gate = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t n_workers() const { return n_workers_; }

  // Runs slices of a stage as long as there are some to take; returns how many it ran. May not throw.
  using Job = uint64_t (*)(void* context, uint32_t worker, uint32_t stage);
  // Calls job(context, worker, stage) for every stage, in order, by one or more workers at the same
  // time; a stage begins when all slices of the one before are done, and sees what they wrote.
  // n_slices[stage]: at least 1. A stage of one slice is run by the worker that ended the stage
  // before it; the others are not told of it.
  // Of short jobs another one is expected soon: helpers look for it a while longer, for up to 12 µs
  // times the number of workers, before they sleep.
  enum class Length { is_short, is_long };
  void run(Job job, void* context, std::span<const uint64_t> n_slices,
           Length length = Length::is_long);

 private:
  // On a line of its own: worker `i` writes it in every stage, and nobody reads it before the job ends.
  struct alignas(64) Presence {
    std::atomic<bool> inside{false};
  };

  void help(uint32_t worker);
  bool enter(uint32_t worker, uint32_t gate);
  void wait_for_another(uint32_t gate);
  bool work_in(uint32_t gate, uint32_t worker);
  uint32_t open_next(uint32_t stage, uint32_t worker);
  void wait_until_nobody_is_inside() const;
  void stop();

  const uint32_t n_workers_;
  const std::vector<MemoryNode> nodes_;
  uint32_t spins_ = 0, long_spins_ = 0;
  std::atomic<uint32_t> spins_now_{0};
  // Read by who is inside a stage, written while nobody is.
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::span<const uint64_t> n_slices_;
  uint32_t first_gate_ = 0;  // the gate while the job's first stage is open
  // The stage that is open: see thread_pool.cpp. Written once for each stage, so that workers who
  // wait for the next one have its line in their caches.
  WaitWord gate_;
  // Slices of the open stage that are not done yet.
  alignas(64) std::atomic<uint64_t> n_left_{0};
  const std::unique_ptr<Presence[]> presence_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace akunu::cpu
