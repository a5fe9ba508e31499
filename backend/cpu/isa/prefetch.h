// Lines of memory that are wanted soon: docs/decisions/0011 says which, and how far ahead.
#pragma once

#include <stdint.h>

#include <cstddef>

namespace akunu::cpu {

constexpr uint64_t kCacheLine = 64;
// Of __builtin_prefetch. For what is asked for long before, the first cache is too small.
constexpr int kIntoFirstCache = 3, kIntoSecondCache = 2;

// Has the lines of [p, p + bytes) on their way.
template <int kInto>
static inline void ask_for_lines(const void* p, uint64_t bytes) {
  for (uint64_t byte = 0; byte < bytes; byte += kCacheLine)
    __builtin_prefetch(static_cast<const std::byte*>(p) + byte, 0, kInto);
}

}  // namespace akunu::cpu
