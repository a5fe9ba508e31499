#include "cpu/wait_word.h"

#include <algorithm>
#include <chrono>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace akunu::cpu {
namespace {

// A wake-up costs the waker microseconds.
[[maybe_unused]] constexpr int kWokenAtOnce = 2;

}  // namespace

// libstdc++'s std::atomic::wait spins on its own before it sleeps, so Linux gets the plain futex.
void WaitWord::sleep_while(uint32_t seen) {
#if defined(__linux__)
  static_assert(sizeof value_ == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
#else
  value_.wait(seen);
#endif
}

void WaitWord::wake() {
  if (n_sleepers_.load(std::memory_order_seq_cst) == 0) return;
#if defined(__linux__)
  syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, kWokenAtOnce, nullptr, nullptr, 0);
#else
  value_.notify_all();
#endif
}

void spin_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // `yield` is a no-op on most cores
#endif
}

uint32_t calibrate_spins(uint32_t microseconds) {
  using Clock = std::chrono::steady_clock;
  constexpr uint32_t kLooks = 256;
  std::atomic<uint32_t> word{0};
  // The shortest of a few rounds: in the others somebody else had the core.
  auto shortest = Clock::duration::max();
  for (int round = 0; round < 5; ++round) {
    const Clock::time_point start = Clock::now();
    for (uint32_t i = 0; i < kLooks && word.load(std::memory_order_seq_cst) == 0; ++i) spin_pause();
    shortest = std::min(shortest, Clock::now() - start);
  }
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(shortest).count();
  const uint64_t per_round = std::max<uint64_t>(1, static_cast<uint64_t>(nanoseconds));
  return static_cast<uint32_t>(uint64_t{microseconds} * 1000 * kLooks / per_round);
}

}  // namespace akunu::cpu
