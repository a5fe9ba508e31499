// Workers that run one job together, in stages. The thread that calls `run` is worker 0; the others
// are helpers that spin for about 50 µs after a job and then sleep.
//
// Nobody waits for a worker that has nothing to do: a stage is over when the workers that came to
// it have left. A helper that the system gives to another program meanwhile holds up the others
// only if it was in the middle of something.
//
// Threads: `run` may be called from any thread, by one at a time. After fork() the child has no
// helpers: it must neither run a job nor destroy the pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cpu/numa.h"
#include "cpu/wait_word.h"

namespace akunu::cpu {

class ThreadPool {
 public:
  // May throw std::system_error, when the system gives no thread. With `nodes`, each helper stays on
  // the processors of one; the caller's thread is its own master.
  explicit ThreadPool(uint32_t n_workers, std::vector<MemoryNode> nodes = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t n_workers() const { return n_workers_; }

  // Works on a stage as long as there is something left to take. May not throw.
  using Job = void (*)(void* context, uint32_t worker, uint32_t stage);
  // Calls job(context, worker, stage) for every stage, in order, by one or more workers at the same
  // time; a stage begins when every call of the one before has returned, and sees what they wrote.
  // widths[stage]: how many workers can share it; nobody is woken for a stage of 1.
  void run(Job job, void* context, std::span<const uint32_t> widths);

 private:
  void help(uint32_t worker);
  void work_from(uint32_t stage, uint32_t worker);
  std::optional<uint32_t> leave(uint32_t stage);
  std::optional<uint32_t> enter_after(uint32_t stage);
  uint32_t index_of(uint32_t stage) const;
  void stop();

  const uint32_t n_workers_;
  const std::vector<MemoryNode> nodes_;
  uint32_t spins_ = 0;
  // Read by who is inside a stage, written while no stage is open.
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::span<const uint32_t> widths_;
  uint32_t first_stage_ = 0;
  // The stage that is open, and how many workers are in it: see thread_pool.cpp.
  WaitWord gate_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> helpers_;
};

// Processors that this process may use: its affinity mask and its container's quota, rounded up.
// Tests give another root of the file system.
uint32_t usable_processors(const std::string& root = "");

}  // namespace akunu::cpu
