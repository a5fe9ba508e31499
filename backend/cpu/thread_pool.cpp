#include "cpu/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <string>

#include "cpu/processors.h"

namespace akunu::cpu {
namespace {

// Longer than the gap between two commands or two steps, far shorter than a scheduler's slice.
constexpr uint32_t kSpinMicroseconds = 50;
// Where jobs are short: about twice as long as it takes until all helpers are awake again (100 µs for
// sixteen), which would be a part of the job.
uint32_t long_spin_microseconds(uint32_t n_workers) {
  return std::max(kSpinMicroseconds, 12 * n_workers);
}

// The gate's word: twice the number of a stage, counted from the pool's birth, and 1 while it is
// open. It may wrap around: who waits waits for another value.
constexpr uint32_t kOpen = 1, kOneStage = 2;

bool is_open(uint32_t gate) { return (gate & kOpen) != 0; }

// Helpers inherit the mask of blocked signals; with all of them blocked, Ctrl-C reaches the
// threads of the program that uses us. Those by which the system reports a mistake of the thread
// itself stay: blocked, they would end the process without a word, and without the handler that
// saves us from files that were truncated (files/mapped_file.h).
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t most;
    sigfillset(&most);
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&most, fault);
    pthread_sigmask(SIG_SETMASK, &most, &before_);
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

ThreadPool::ThreadPool(uint32_t n_workers, std::vector<MemoryNode> nodes, uint32_t first_gate)
    : n_workers_(n_workers),
      nodes_(std::move(nodes)),
      gate_(first_gate & ~kOpen),
      presence_(std::make_unique<Presence[]>(n_workers)) {
  // With more workers than processors, one that spins only keeps another from running.
  if (n_workers <= usable_processors()) {
    spins_ = calibrate_spins(kSpinMicroseconds);
    long_spins_ = calibrate_spins(long_spin_microseconds(n_workers));
  }
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
  stopping_.store(true);
  gate_.set(gate_.value() + kOneStage);
  gate_.wake();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::run(Job job, void* context, std::span<const uint64_t> n_slices, Length length) {
  if (n_slices.empty()) return;
  spins_now_.store(length == Length::is_short ? long_spins_ : spins_, std::memory_order_relaxed);
  job_ = job;
  context_ = context;
  n_slices_ = n_slices;
  first_gate_ = (gate_.value() + kOneStage) | kOpen;
  uint32_t gate = open_next(0, 0);
  while (is_open(gate)) {
    if (!work_in(gate, 0)) wait_for_another(gate);
    gate = gate_.value();
  }
  wait_until_nobody_is_inside();
}

void ThreadPool::wait_for_another(uint32_t gate) {
  gate_.wait_until([&](uint32_t now) { return now != gate; },
                   spins_now_.load(std::memory_order_relaxed));
}

// Runs what it can of the open stage. Whether that was the last of it, and the gate has changed.
bool ThreadPool::work_in(uint32_t gate, uint32_t worker) {
  const uint32_t stage = (gate - first_gate_) / kOneStage;
  const uint64_t n_done = job_(context_, worker, stage);
  if (n_done == 0 || n_left_.fetch_sub(n_done, std::memory_order_acq_rel) != n_done) return false;
  open_next(stage + 1, worker);
  return true;
}

// Opens a stage; those of one slice it runs itself. Behind the last stage it closes the gate. Called
// by one worker at a time: in a stage that has not begun, nobody else is.
uint32_t ThreadPool::open_next(uint32_t stage, uint32_t worker) {
  for (; stage < n_slices_.size() && n_slices_[stage] == 1; ++stage) job_(context_, worker, stage);
  uint32_t gate = first_gate_ + stage * kOneStage;
  if (stage < n_slices_.size()) {
    n_left_.store(n_slices_[stage], std::memory_order_relaxed);
  } else {
    gate &= ~kOpen;
    if (!is_open(gate_.value())) return gate;  // nobody was told of this job
  }
  gate_.set(gate);
  gate_.wake();
  return gate;
}

// A helper says that it reads the job before it looks whether the stage is still open; who ends a job
// closes the gate before looking at who is inside. One of the two sees the other.
bool ThreadPool::enter(uint32_t worker, uint32_t gate) {
  std::atomic<bool>& inside = presence_[worker].inside;
  inside.store(true, std::memory_order_seq_cst);
  if (gate_.value() == gate) return true;
  inside.store(false, std::memory_order_release);
  return false;
}

// Helpers leave a stage as soon as they find nothing in it, and wait for the next one outside: whom
// the system takes its processor from there is not waited for.
void ThreadPool::wait_until_nobody_is_inside() const {
  for (uint32_t worker = 1; worker < n_workers_; ++worker)
    for (uint32_t looks = 0; presence_[worker].inside.load(std::memory_order_seq_cst); ++looks)
      looks < spins_ ? spin_pause() : std::this_thread::yield();
}

void ThreadPool::help(uint32_t worker) {
  name_this_thread(worker);
  if (!nodes_.empty()) stay_on(nodes_[node_of_worker(nodes_, worker, n_workers_)]);
  uint32_t seen = gate_.value();
  while (!stopping_.load()) {
    if (is_open(seen) && enter(worker, seen)) {
      const bool ended = work_in(seen, worker);
      presence_[worker].inside.store(false, std::memory_order_release);
      if (ended) {
        seen = gate_.value();
        continue;
      }
    }
    wait_for_another(seen);
    seen = gate_.value();
  }
}

}  // namespace akunu::cpu
