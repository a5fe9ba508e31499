#include "cpu/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "cpu/cgroup.h"

namespace akunu::cpu {
namespace {

// Longer than the gap between two commands or two steps, far shorter than a scheduler's slice.
constexpr uint32_t kSpinMicroseconds = 50;

// Helpers inherit the mask of blocked signals; with all of them blocked, Ctrl-C reaches the
// threads of the program that uses us.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

void name_this_thread(uint32_t worker) {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), ("akunu-" + std::to_string(worker)).c_str());
#else
  static_cast<void>(worker);
#endif
}

}  // namespace

ThreadPool::ThreadPool(uint32_t n_workers) : n_workers_(n_workers) {
  // With more workers than processors, one that spins only keeps another from running.
  if (n_workers <= usable_processors()) spins_ = calibrate_spins(kSpinMicroseconds);
  const SignalsBlocked blocked;
  helpers_.reserve(n_workers - 1);
  try {
    for (uint32_t worker = 1; worker < n_workers; ++worker)
      helpers_.emplace_back([this, worker] { help(worker); });
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  job_ = nullptr;
  started_.advance();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::run(Job job, void* context) {
  if (n_workers_ == 1) return job(context, 0);
  job_ = job;
  context_ = context;
  started_.advance();
  job(context, 0);
  barrier();
}

void ThreadPool::barrier() {
  if (n_workers_ == 1) return;
  const uint32_t seen = released_.value();  // cannot change before this worker has arrived
  if (n_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_workers_) {
    n_arrived_.store(0, std::memory_order_relaxed);  // published by `advance`
    released_.advance();
  } else {
    released_.wait_past(seen, spins_);
  }
}

void ThreadPool::help(uint32_t worker) {
  name_this_thread(worker);
  // Jobs are counted from the pool's birth, so that a helper that comes late misses none.
  for (uint32_t seen = 0;; ++seen) {
    started_.wait_past(seen, spins_);
    if (job_ == nullptr) return;
    job_(context_, worker);
    barrier();
  }
}

uint32_t usable_processors() {
  uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    processors = std::max(1u, static_cast<uint32_t>(CPU_COUNT(&allowed)));
#endif
  if (const std::optional<double> quota = processor_quota())
    processors = std::min(processors, std::max(1u, static_cast<uint32_t>(std::ceil(*quota))));
  return processors;
}

}  // namespace akunu::cpu
