// Workers that run one job together. The thread that calls `run` is worker 0; the others are
// helpers that spin for about 50 µs after a job and then sleep.
//
// Threads: `run` may be called from any thread, by one at a time. After fork() the child has no
// helpers: it must neither run a job nor destroy the pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "cpu/wait_word.h"

namespace akunu::cpu {

class ThreadPool {
 public:
  // May throw std::system_error, when the system gives no thread.
  explicit ThreadPool(uint32_t n_workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t n_workers() const { return n_workers_; }

  using Job = void (*)(void* context, uint32_t worker);
  // Calls job(context, worker) once per worker, all at the same time; returns when all are done.
  // The job may not throw.
  void run(Job job, void* context);

  // Inside a job: returns when every worker has called it, and sees what they wrote before.
  void barrier();

 private:
  void help(uint32_t worker);
  void stop();

  const uint32_t n_workers_;
  uint32_t spins_ = 0;
  Job job_ = nullptr;  // null: the helpers end
  void* context_ = nullptr;
  WaitWord started_;   // counts jobs
  WaitWord released_;  // counts barriers
  alignas(64) std::atomic<uint32_t> n_arrived_{0};
  std::vector<std::thread> helpers_;
};

// Processors that this process may use: its affinity mask and its container's quota, rounded up.
uint32_t usable_processors();

}  // namespace akunu::cpu
