// Counts every allocation of the process while `run` runs, on all threads. The linker puts it
// between
// (--wrap, with libstdc++ linked statically, so that operator new is seen too; under a sanitizer,
// which brings its own operator new, only the malloc family is). Include it in one translation
// unit.
#pragma once

#include <atomic>
#include <cstdlib>

namespace akunu::test {

inline std::atomic<bool> counting{false};
inline std::atomic<long> n_allocations{0};

inline void note_allocation() {
  if (counting.load(std::memory_order_relaxed))
    n_allocations.fetch_add(1, std::memory_order_relaxed);
}

template <class Run>
long count_allocations(Run&& run) {
  n_allocations = 0;
  counting = true;
  run();
  counting = false;
  return n_allocations;
}

}  // namespace akunu::test

extern "C" {
void* __real_malloc(size_t size);
void* __real_calloc(size_t n, size_t size);
void* __real_realloc(void* pointer, size_t size);
void* __real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void** pointer, size_t alignment, size_t size);

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
void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  akunu::test::note_allocation();
  return __real_aligned_alloc(alignment, size);
}
int __wrap_posix_memalign(void** pointer, size_t alignment, size_t size) {
  akunu::test::note_allocation();
  return __real_posix_memalign(pointer, alignment, size);
}
}
