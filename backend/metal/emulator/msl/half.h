// half: a number of IEEE binary16. Each operation is done in float and rounded to half, which is the
// correctly rounded result (24 bits are more than twice 11 and two). A class and not the compiler's
// _Float16, which not every compiler has here, and which may keep intermediate results in float.
#pragma once

#include "metal/emulator/msl/build.h"

namespace AKUNU_METAL_BUILD {

AKUNU_MSL_INLINE constexpr float half_to_float(uint16_t bits) {
  // The exponent moves by a product, which also makes subnormals right.
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
  uint32_t result = __builtin_bit_cast(uint32_t, scaled);
  if ((bits & 0x7c00) == 0x7c00) result = magnitude | 0x7f800000u;
  return __builtin_bit_cast(float, result | sign);
}

AKUNU_MSL_INLINE constexpr uint16_t float_to_half(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 16) & 0x8000u;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((bits >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more
  if (magnitude < 0x38800000u) {  // below the normal halves: the sum rounds at 2^-24
    const float sum = __builtin_bit_cast(float, magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, sum) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1;  // to nearest, ties to even
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

struct half {
  uint16_t bits;

  half() = default;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  AKUNU_MSL_INLINE constexpr half(T value) : bits(float_to_half(static_cast<float>(value))) {}

  AKUNU_MSL_INLINE constexpr operator float() const { return half_to_float(bits); }

  template <class T>
  AKUNU_MSL_INLINE constexpr half& operator+=(T other) {
    return *this = half(float(*this) + float(other));
  }
  template <class T>
  AKUNU_MSL_INLINE constexpr half& operator-=(T other) {
    return *this = half(float(*this) - float(other));
  }
  template <class T>
  AKUNU_MSL_INLINE constexpr half& operator*=(T other) {
    return *this = half(float(*this) * float(other));
  }
  template <class T>
  AKUNU_MSL_INLINE constexpr half& operator/=(T other) {
    return *this = half(float(*this) / float(other));
  }
  AKUNU_MSL_INLINE constexpr half operator-() const {
    half result;
    result.bits = static_cast<uint16_t>(bits ^ 0x8000);
    return result;
  }
  AKUNU_MSL_INLINE constexpr half operator+() const { return *this; }
};

AKUNU_MSL_INLINE constexpr half operator+(half a, half b) { return half(float(a) + float(b)); }
AKUNU_MSL_INLINE constexpr half operator-(half a, half b) { return half(float(a) - float(b)); }
AKUNU_MSL_INLINE constexpr half operator*(half a, half b) { return half(float(a) * float(b)); }
AKUNU_MSL_INLINE constexpr half operator/(half a, half b) { return half(float(a) / float(b)); }

// With a float the sum is a float, with a whole number it is a half.
#define AKUNU_HALF_OPERATOR(op)                                               \
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>      \
  AKUNU_MSL_INLINE constexpr auto operator op(half a, T b) {                  \
    using Result = std::conditional_t<std::is_same_v<T, float>, float, half>; \
    return Result(float(a) op float(Result(b)));                              \
  }                                                                           \
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>      \
  AKUNU_MSL_INLINE constexpr auto operator op(T a, half b) {                  \
    using Result = std::conditional_t<std::is_same_v<T, float>, float, half>; \
    return Result(float(Result(a)) op float(b));                              \
  }
AKUNU_HALF_OPERATOR(+)
AKUNU_HALF_OPERATOR(-)
AKUNU_HALF_OPERATOR(*)
AKUNU_HALF_OPERATOR(/)
#undef AKUNU_HALF_OPERATOR

#define AKUNU_HALF_COMPARISON(op)                                                              \
  AKUNU_MSL_INLINE constexpr bool operator op(half a, half b) { return float(a) op float(b); } \
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>                       \
  AKUNU_MSL_INLINE constexpr bool operator op(half a, T b) {                                   \
    return float(a) op float(b);                                                               \
  }                                                                                            \
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>                       \
  AKUNU_MSL_INLINE constexpr bool operator op(T a, half b) {                                   \
    return float(a) op float(b);                                                               \
  }
AKUNU_HALF_COMPARISON(==)
AKUNU_HALF_COMPARISON(!=)
AKUNU_HALF_COMPARISON(<)
AKUNU_HALF_COMPARISON(<=)
AKUNU_HALF_COMPARISON(>)
AKUNU_HALF_COMPARISON(>=)
#undef AKUNU_HALF_COMPARISON

AKUNU_MSL_INLINE constexpr half operator""h(long double value) {
  return half(static_cast<float>(value));
}

namespace metal {
template <class T>
inline constexpr bool is_number_v = std::is_arithmetic_v<T> || std::is_same_v<T, half>;
}  // namespace metal
}  // namespace AKUNU_METAL_BUILD
