#include "cpu/wait_word.h"

#include <algorithm>
#include <chrono>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace akunu::cpu {
namespace {

// libstdc++'s std::atomic::wait spins on its own before it sleeps, so Linux gets the plain futex.
void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) {
#if defined(__linux__)
  static_assert(sizeof(word) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
#else
  word.wait(seen);
#endif
}

void wake_all(std::atomic<uint32_t>& word) {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#else
  word.notify_all();
#endif
}

}  // namespace

// No wake-up is lost: both sides are sequentially consistent, so either the sleeper sees the new
// value after it announced itself, or the waker sees the announcement after it changed the value.
// (Between the sleeper's look and its sleep the kernel compares the value once more.)
void WaitWord::advance() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (n_sleepers_.load(std::memory_order_seq_cst) > 0) wake_all(value_);
}

void WaitWord::wait_past(uint32_t seen, uint32_t spins) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (value_.load(std::memory_order_acquire) != seen) return;
    spin_pause();
  }
  n_sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == seen) sleep_while(value_, seen);
  n_sleepers_.fetch_sub(1, std::memory_order_relaxed);
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
    for (uint32_t i = 0; i < kLooks && word.load(std::memory_order_acquire) == 0; ++i) spin_pause();
    shortest = std::min(shortest, Clock::now() - start);
  }
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(shortest).count();
  const uint64_t per_round = std::max<uint64_t>(1, static_cast<uint64_t>(nanoseconds));
  return static_cast<uint32_t>(uint64_t{microseconds} * 1000 * kLooks / per_round);
}

}  // namespace akunu::cpu
