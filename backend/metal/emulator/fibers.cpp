#include "metal/emulator/fibers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#ifdef AKUNU_FIBERS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace akunu::metal::emulator {
namespace {

constexpr size_t kStackBytes = 128 * 1024;
constexpr size_t kGuardBytes = 64 * 1024;  // a multiple of every page size
constexpr size_t kSpacing = kStackBytes + kGuardBytes;

}  // namespace

StackPool::StackPool(uint32_t n_stacks, size_t extra_bytes)
    : size_((extra_bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes + n_stacks * kSpacing),
      extra_bytes_(size_ - n_stacks * kSpacing) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "stacks for the lanes");
  }
  memory_ = static_cast<std::byte*>(memory);
  free_.reserve(n_stacks);
}

StackPool::~StackPool() {
#ifdef AKUNU_FIBERS_ADDRESS_SANITIZER
  // Fibers that are not run to their end leave their frames marked. Memory that is mapped here next has none.
  __asan_unpoison_memory_region(memory_, size_);
#endif
  munmap(memory_, size_);
}

void StackPool::reserve(uint32_t n_stacks) {
  for (; n_guarded_ < n_stacks; ++n_guarded_) {
    std::byte* guard = memory_ + extra_bytes_ + n_guarded_ * kSpacing;
    if (mprotect(guard, kGuardBytes, PROT_NONE) != 0) {
      throw std::system_error(errno, std::generic_category(), "guard of a lane's stack");
    }
  }
}

Stack StackPool::take() {
  Stack stack;
  if (free_.empty()) {
    // Lanes run in turns: if all stacks began at the same place of a page, they would share a few
    // sets of the first cache.
    const uint32_t index = n_used_++;
    const size_t shift = (index % 32) * 5 % 32 * 320;
    stack = {memory_ + extra_bytes_ + index * kSpacing + kGuardBytes, kStackBytes - shift};
  } else {
    stack = free_.back();
    free_.pop_back();
  }
#ifdef AKUNU_FIBERS_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(stack.base, stack.size);
#endif
  return stack;
}

#ifdef AKUNU_FIBERS_ASSEMBLY

extern "C" void akunu_emulator_switch(void** from, void* to);

// Saves what a call keeps, exchanges the stacks, restores. The state of the floating-point unit is
// the same for all fibers.
#if defined(__x86_64__)
constexpr size_t kSavedBytes = 6 * 8;
asm(R"(
.text
.p2align 4
.globl akunu_emulator_switch
.hidden akunu_emulator_switch
.type akunu_emulator_switch, @function
akunu_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size akunu_emulator_switch, .-akunu_emulator_switch
)");
#else
constexpr size_t kSavedBytes = 20 * 8;
asm(R"(
.text
.p2align 4
.globl akunu_emulator_switch
.hidden akunu_emulator_switch
.type akunu_emulator_switch, %function
akunu_emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size akunu_emulator_switch, .-akunu_emulator_switch
)");
#endif

void prepare(Fiber& fiber, Stack stack, void (*entry)()) {
  uintptr_t* top = reinterpret_cast<uintptr_t*>(stack.base + stack.size);
#if defined(__x86_64__)
  // As a call of `entry` would leave it: the return address at 16 n + 8.
  top[-1] = 0;
  top[-2] = reinterpret_cast<uintptr_t>(entry);
  uintptr_t* saved = top - 2 - kSavedBytes / 8;
  for (size_t i = 0; i < kSavedBytes / 8; ++i) saved[i] = 0;
#else
  uintptr_t* saved = top - kSavedBytes / 8;
  for (size_t i = 0; i < kSavedBytes / 8; ++i) saved[i] = 0;
  saved[11] = reinterpret_cast<uintptr_t>(entry);  // x30, where `ret` goes
#endif
  fiber.stack_pointer = saved;
}

void switch_fiber(Fiber& from, Fiber& to, bool) {
  akunu_emulator_switch(&from.stack_pointer, to.stack_pointer);
}

void begin_fiber(Fiber&) {}

#else

void prepare(Fiber& fiber, Stack stack, void (*entry)()) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack.base;
  fiber.context.uc_stack.ss_size = stack.size;
  fiber.context.uc_link = nullptr;
  fiber.fake_stack = nullptr;
  fiber.stack = stack;
  makecontext(&fiber.context, entry, 0);
}

void switch_fiber(Fiber& from, Fiber& to, [[maybe_unused]] bool is_last) {
#ifdef AKUNU_FIBERS_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(is_last ? nullptr : &from.fake_stack, to.stack.base,
                                 to.stack.size);
#endif
  swapcontext(&from.context, &to.context);
#ifdef AKUNU_FIBERS_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void begin_fiber([[maybe_unused]] Fiber& from) {
#ifdef AKUNU_FIBERS_ADDRESS_SANITIZER
  // Who switched first is the thread, whose stack only now becomes known.
  const void* base = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &base, &size);
  if (from.stack.base == nullptr) {
    from.stack = {static_cast<std::byte*>(const_cast<void*>(base)), size};
  }
#endif
}

#endif

}  // namespace akunu::metal::emulator
