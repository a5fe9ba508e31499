// Counts every allocation of the process between start() and stop(): operator new and malloc alike,
// on all threads. Include it in one translation unit of a driver.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace akunu::test {

inline std::atomic<bool> counting{false};
inline std::atomic<long> n_allocations{0};

inline void note_allocation() {
  if (counting.load(std::memory_order_relaxed)) n_allocations.fetch_add(1, std::memory_order_relaxed);
}

// Allocations during `run`.
template <class Run>
long count_allocations(Run&& run) {
  n_allocations = 0;
  counting = true;
  run();
  counting = false;
  return n_allocations;
}

}  // namespace akunu::test

// malloc itself is hooked by the linker (--wrap), so that what C libraries take is seen as well.
extern "C" {
void* __real_malloc(size_t size);
void* __real_calloc(size_t n, size_t size);
void* __real_realloc(void* pointer, size_t size);
void* __wrap_malloc(size_t size) {
  akunu::test::note_allocation();
  return __real_malloc(size);
}
void* __wrap_calloc(size_t n, size_t size) {
  akunu::test::note_allocation();
  return __real_calloc(n, size);
}
void* __wrap_realloc(void* pointer, size_t size) {
  akunu::test::note_allocation();
  return __real_realloc(pointer, size);
}
}

void* operator new(size_t size) {
  akunu::test::note_allocation();
  if (void* pointer = std::malloc(size == 0 ? 1 : size)) return pointer;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t alignment) {
  akunu::test::note_allocation();
  const size_t align = static_cast<size_t>(alignment);
  if (void* pointer = std::aligned_alloc(align, (size + align - 1) / align * align)) return pointer;
  throw std::bad_alloc();
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, size_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, size_t, std::align_val_t) noexcept { std::free(pointer); }
