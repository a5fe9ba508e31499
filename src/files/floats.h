// Numbers of the float formats, as they lie in files, as float32. All of them exactly.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/format.h"

namespace akunu {

// IEEE 754 binary16 to binary32, exact.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

// bfloat16 to binary32, exact: it is the upper half.
inline float bfloat_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

template <class Number>
inline Number number_at(std::span<const std::byte> bytes, size_t i) {
  Number number;
  std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
  return number;
}

// Number `i` of those in `bytes`, whose format is F32, F16 or BF16.
inline float float_at(Format format, std::span<const std::byte> bytes, size_t i) {
  if (format == Format::f32) return number_at<float>(bytes, i);
  const auto bits = number_at<uint16_t>(bytes, i);
  return format == Format::f16 ? half_to_float(bits) : bfloat_to_float(bits);
}

}  // namespace akunu
