// What the compiler calls for every access to memory in a file compiled with -fsanitize=thread. No
// runtime of a sanitizer is linked: level `checked` is made of these.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "metal/emulator/checks.h"
#include "metal/emulator/threadgroup.h"

namespace {

using akunu::metal::emulator::running;

inline void look(const volatile void* address, size_t size, bool is_write) {
  // Nothing runs while constants are set up.
  if (running == nullptr || running->checks() == nullptr) return;
  running->checks()->access(reinterpret_cast<uintptr_t>(address), size, is_write, false);
}

}  // namespace

extern "C" {

void __tsan_init();
void __tsan_func_entry(void*);
void __tsan_func_exit();
void __tsan_read_range(void* address, size_t size);
void __tsan_write_range(void* address, size_t size);
void __tsan_vptr_update(void** address, void* value);
void __tsan_vptr_read(void** address);
void* __tsan_memcpy(void* to, const void* from, size_t size);
void* __tsan_memmove(void* to, const void* from, size_t size);
void* __tsan_memset(void* to, int value, size_t size);

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read_range(void* address, size_t size) { look(address, size, false); }
void __tsan_write_range(void* address, size_t size) { look(address, size, true); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

void* __tsan_memcpy(void* to, const void* from, size_t size) {
  look(from, size, false);
  look(to, size, true);
  return std::memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, size_t size) {
  look(from, size, false);
  look(to, size, true);
  return std::memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, size_t size) {
  look(to, size, true);
  return std::memset(to, value, size);
}

#define AKUNU_HOOKS(size)                                                                     \
  void __tsan_read##size(void* address);                                                      \
  void __tsan_write##size(void* address);                                                     \
  void __tsan_read_write##size(void* address);                                                \
  void __tsan_unaligned_read##size(void* address);                                            \
  void __tsan_unaligned_write##size(void* address);                                           \
  void __tsan_unaligned_read_write##size(void* address);                                      \
  void __tsan_volatile_read##size(void* address);                                             \
  void __tsan_volatile_write##size(void* address);                                            \
  void __tsan_unaligned_volatile_read##size(void* address);                                   \
  void __tsan_unaligned_volatile_write##size(void* address);                                  \
  void __tsan_read##size(void* address) { look(address, size, false); }                       \
  void __tsan_write##size(void* address) { look(address, size, true); }                       \
  void __tsan_read_write##size(void* address) {                                               \
    look(address, size, false);                                                               \
    look(address, size, true);                                                                \
  }                                                                                           \
  void __tsan_unaligned_read##size(void* address) { look(address, size, false); }             \
  void __tsan_unaligned_write##size(void* address) { look(address, size, true); }             \
  void __tsan_unaligned_read_write##size(void* address) { __tsan_read_write##size(address); } \
  void __tsan_volatile_read##size(void* address) { look(address, size, false); }              \
  void __tsan_volatile_write##size(void* address) { look(address, size, true); }              \
  void __tsan_unaligned_volatile_read##size(void* address) { look(address, size, false); }    \
  void __tsan_unaligned_volatile_write##size(void* address) { look(address, size, true); }
AKUNU_HOOKS(1)
AKUNU_HOOKS(2)
AKUNU_HOOKS(4)
AKUNU_HOOKS(8)
AKUNU_HOOKS(16)
#undef AKUNU_HOOKS

}  // extern "C"
