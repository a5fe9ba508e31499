// A counter that threads wait on: they spin for a while, then sleep in the kernel. Whoever advances
// it makes a system call only when somebody sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace akunu::cpu {

class WaitWord {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  // Everything written before is seen by whoever returns from wait_past.
  void advance();
  // Returns once the value is no longer `seen`; `spins` says how often to look before sleeping.
  void wait_past(uint32_t seen, uint32_t spins);

 private:
  // On a line of its own: the spinning threads' reads must not slow down their neighbours.
  alignas(64) std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> n_sleepers_{0};
};

// Tells the core that this is a spin loop, which frees it for its hyper-thread sibling.
void spin_pause();

// How many looks of `wait_past` last `microseconds`, measured with the monotonic clock.
uint32_t calibrate_spins(uint32_t microseconds);

}  // namespace akunu::cpu
