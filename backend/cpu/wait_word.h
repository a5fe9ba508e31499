// A word that threads change and wait on: they spin for a while, then sleep in the kernel. Whoever
// wakes them makes a system call only when somebody sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace akunu::cpu {

class WaitWord {
 public:
  explicit WaitWord(uint32_t value = 0) : value_(value) {}
  // Sees everything that was written before the word got this value.
  uint32_t value() const { return value_.load(std::memory_order_seq_cst); }
  // Who waits for the change needs a `wake` after it.
  void set(uint32_t value) { value_.store(value, std::memory_order_seq_cst); }
  // Wakes a few of those who sleep; each of them wakes a few more. So whoever changes the word pays
  // for a few, however many sleep. Everybody who waits must be waiting for this change.
  void wake();
  // Returns once `done(value())`; `spins` says how often to look before sleeping.
  template <class Done>
  void wait_until(Done&& done, uint32_t spins);

 private:
  void sleep_while(uint32_t seen);  // may return early

  // On a line of its own: the spinning threads' reads must not slow down their neighbours.
  alignas(64) std::atomic<uint32_t> value_;
  std::atomic<uint32_t> n_sleepers_{0};
};

// Tells the core that this is a spin loop, which frees it for its hyper-thread sibling.
void spin_pause();

// How many looks of `wait_until` last `microseconds`, measured with the monotonic clock.
uint32_t calibrate_spins(uint32_t microseconds);

// No wake-up is lost: both sides are sequentially consistent, so either the sleeper sees the new
// value after it announced itself, or the waker sees the announcement after it changed the value.
// (Between the sleeper's look and its sleep the kernel compares the value once more.)
template <class Done>
void WaitWord::wait_until(Done&& done, uint32_t spins) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (done(value())) return;
    spin_pause();
  }
  n_sleepers_.fetch_add(1, std::memory_order_seq_cst);
  for (uint32_t seen = value(); !done(seen); seen = value()) sleep_while(seen);
  n_sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  wake();
}

}  // namespace akunu::cpu
