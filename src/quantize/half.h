// Halves and bfloat16 as whole numbers, rounded to the nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

#include "quantize/level.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

inline float float_from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t shifted = static_cast<uint32_t>(half & 0x7fffu) << 13;
  if ((half & 0x7c00u) == 0x7c00u)
    return std::bit_cast<float>(sign | 0x7f800000u | (shifted & 0x7fffffu));
  // The exponents of the two formats differ by 112; subnormal halves come out right as well.
  const float magnitude = std::bit_cast<float>(shifted) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t half_from_float(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // A subnormal half is a multiple of 2^-24, as are the floats from 0.5 to 1.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

inline bool is_finite_half(uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }

inline float float_from_bf16(uint16_t x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

inline uint16_t bf16_from_float(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
