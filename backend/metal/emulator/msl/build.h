// Every kernel is compiled twice. Nothing with a body may be shared between the two builds: the
// linker would keep one of them. So all that kernels see lies in a namespace of the build.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "metal/emulator/runtime.h"

#define AKUNU_MSL_INLINE inline __attribute__((always_inline))

#ifdef AKUNU_METAL_CHECKED
#define AKUNU_METAL_BUILD metal_checked
#else
#define AKUNU_METAL_BUILD metal_plain
#endif

namespace AKUNU_METAL_BUILD {

namespace emulator = ::akunu::metal::emulator;

using uchar = uint8_t;
using ushort = uint16_t;
using uint = uint32_t;
using ulong = uint64_t;

namespace metal {

template <class To, class From>
AKUNU_MSL_INLINE constexpr To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type: both types have one size");
  return __builtin_bit_cast(To, from);
}

}  // namespace metal
using metal::as_type;
}  // namespace AKUNU_METAL_BUILD
