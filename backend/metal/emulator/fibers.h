// Fibers: functions that run in turns on one thread, each on a stack of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define AKUNU_FIBERS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AKUNU_FIBERS_ADDRESS_SANITIZER 1
#endif
#endif

// The switch is a dozen instructions of assembly where they are written down; else, and where a
// sanitizer has to be told of every switch, ucontext's.
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && \
    !defined(AKUNU_FIBERS_ADDRESS_SANITIZER)
#define AKUNU_FIBERS_ASSEMBLY 1
#else
#include <ucontext.h>
#endif

namespace akunu::metal::emulator {

struct Stack {
  std::byte* base = nullptr;
  size_t size = 0;
};

// Where a fiber stopped. The thread's own stack is one too: an empty Fiber that is switched from.
struct Fiber {
#ifdef AKUNU_FIBERS_ASSEMBLY
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
  void* fake_stack = nullptr;
  Stack stack;
#endif
};

// `entry` begins at the first switch to the fiber, and never returns.
void prepare(Fiber& fiber, Stack stack, void (*entry)());
// Runs `to` until something switches to `from`. Where `from` will never run again, `is_last` says so.
void switch_fiber(Fiber& from, Fiber& to, bool is_last = false);
// The first thing that `entry` calls. `from` is who switched.
void begin_fiber(Fiber& from);

// Stacks in one piece of memory, each above a page that may not be touched. Their beginnings differ
// in where they fall in the caches.
class StackPool {
 public:
  StackPool(uint32_t n_stacks, size_t extra_bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // Guards so many stacks. Throws std::system_error.
  void reserve(uint32_t n_stacks);
  Stack take();
  void give_back(Stack stack) { free_.push_back(stack); }
  // Every stack is free again.
  void reset() {
    free_.clear();
    n_used_ = 0;
  }

  // Stacks and the extra bytes, which come first.
  std::byte* memory() const { return memory_; }
  size_t size() const { return size_; }

 private:
  std::byte* memory_ = nullptr;
  size_t size_ = 0;
  size_t extra_bytes_ = 0;
  uint32_t n_guarded_ = 0;
  uint32_t n_used_ = 0;
  std::vector<Stack> free_;
};

}  // namespace akunu::metal::emulator
