// Software prefetches. Who prefetches what, and how far ahead: kernels/panel_prefetch.h for
// weights, kernels/attention.cpp for pages. What was tried: docs/decisions/prefetching-on-the-cpu.md.
#pragma once

#include <stdint.h>

#include <cstddef>

namespace akunu::cpu {

constexpr uint64_t kCacheLine = 64;
// Localities of __builtin_prefetch. L1 is too small for what is prefetched long before its use.
constexpr int kIntoL1 = 3, kIntoL2 = 2;

// Prefetches the cache lines of [p, p + bytes).
template <int kInto>
static inline void prefetch_lines(const void* p, uint64_t bytes) {
  for (uint64_t byte = 0; byte < bytes; byte += kCacheLine)
    __builtin_prefetch(static_cast<const std::byte*>(p) + byte, 0, kInto);
}

}  // namespace akunu::cpu
