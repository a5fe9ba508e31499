// The functions of <metal_math>, <metal_integer>, <metal_relational> and <metal_common>, for
// numbers and vectors. fast:: is as exact as precise:: here.
#pragma once

#include "metal/emulator/msl/vector.h"

namespace AKUNU_METAL_BUILD {
namespace metal {
namespace precise {

#define AKUNU_MATH_1(name, expression)                                                      \
  AKUNU_MSL_INLINE float name(float x) { return expression; }                               \
  AKUNU_MSL_INLINE half name(half h) { return half(name(float(h))); }                       \
  template <class T, int N>                                                                 \
  AKUNU_MSL_INLINE vec<T, N> name(const vec<T, N>& v) {                                     \
    return for_each_element([](T x) __attribute__((always_inline)) { return name(x); }, v); \
  }
AKUNU_MATH_1(exp, __builtin_expf(x))
AKUNU_MATH_1(exp2, __builtin_exp2f(x))
AKUNU_MATH_1(log, __builtin_logf(x))
AKUNU_MATH_1(log2, __builtin_log2f(x))
AKUNU_MATH_1(log10, __builtin_log10f(x))
AKUNU_MATH_1(sin, __builtin_sinf(x))
AKUNU_MATH_1(cos, __builtin_cosf(x))
AKUNU_MATH_1(tan, __builtin_tanf(x))
AKUNU_MATH_1(sinh, __builtin_sinhf(x))
AKUNU_MATH_1(cosh, __builtin_coshf(x))
AKUNU_MATH_1(tanh, __builtin_tanhf(x))
AKUNU_MATH_1(sqrt, __builtin_sqrtf(x))
AKUNU_MATH_1(rsqrt, 1.0f / __builtin_sqrtf(x))
AKUNU_MATH_1(floor, __builtin_floorf(x))
AKUNU_MATH_1(ceil, __builtin_ceilf(x))
AKUNU_MATH_1(trunc, __builtin_truncf(x))
AKUNU_MATH_1(round, __builtin_roundf(x))
AKUNU_MATH_1(rint, __builtin_rintf(x))
AKUNU_MATH_1(fabs, __builtin_fabsf(x))
AKUNU_MATH_1(saturate, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)
AKUNU_MATH_1(sign, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : (x == 0.0f ? x : 0.0f)))
#undef AKUNU_MATH_1

#define AKUNU_MATH_2(name, expression)                                                             \
  AKUNU_MSL_INLINE float name(float x, float y) { return expression; }                             \
  AKUNU_MSL_INLINE half name(half x, half y) { return half(name(float(x), float(y))); }            \
  template <class T, int N>                                                                        \
  AKUNU_MSL_INLINE vec<T, N> name(const vec<T, N>& a, const vec<T, N>& b) {                        \
    return for_each_element([](T x, T y) __attribute__((always_inline)) { return name(x, y); }, a, \
                            b);                                                                    \
  }
AKUNU_MATH_2(divide, x / y)
AKUNU_MATH_2(pow, __builtin_powf(x, y))
AKUNU_MATH_2(powr, __builtin_powf(x, y))
AKUNU_MATH_2(fmod, __builtin_fmodf(x, y))
AKUNU_MATH_2(copysign, __builtin_copysignf(x, y))
// One number that is not a number gives the other.
AKUNU_MATH_2(fmin, (y < x || x != x) ? y : x)
AKUNU_MATH_2(fmax, (x < y || x != x) ? y : x)
#undef AKUNU_MATH_2

AKUNU_MSL_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
// The product of two halves is a float, the sum is rounded to odd, then to half: one rounding.
AKUNU_MSL_INLINE half fma(half x, half y, half z) {
  const double sum = static_cast<double>(float(x) * float(y)) + static_cast<double>(float(z));
  const float nearest = static_cast<float>(sum);
  uint32_t bits = __builtin_bit_cast(uint32_t, nearest);
  if (static_cast<double>(nearest) != sum && (bits & 1) == 0) {
    const bool too_large = (static_cast<double>(nearest) > sum) == (nearest > 0.0f);
    bits = too_large ? bits - 1 : bits + 1;
  }
  return half(__builtin_bit_cast(float, bits));
}
template <class T, int N>
AKUNU_MSL_INLINE vec<T, N> fma(const vec<T, N>& a, const vec<T, N>& b, const vec<T, N>& c) {
  return for_each_element([](T x, T y, T z) __attribute__((always_inline)) { return fma(x, y, z); },
                          a, b, c);
}

}  // namespace precise

using namespace precise;
namespace fast {
using namespace precise;
}  // namespace fast

AKUNU_MSL_INLINE bool isnan(float x) { return __builtin_isnan(x); }
AKUNU_MSL_INLINE bool isinf(float x) { return __builtin_isinf(x); }
AKUNU_MSL_INLINE bool isfinite(float x) { return __builtin_isfinite(x); }
AKUNU_MSL_INLINE bool signbit(float x) { return __builtin_signbit(x); }
template <int N>
AKUNU_MSL_INLINE vec<bool, N> isnan(const vec<float, N>& v) {
  return for_each_element([](float x) __attribute__((always_inline)) { return isnan(x); }, v);
}
template <int N>
AKUNU_MSL_INLINE vec<bool, N> isinf(const vec<float, N>& v) {
  return for_each_element([](float x) __attribute__((always_inline)) { return isinf(x); }, v);
}

// Two numbers of one type: as on the GPU, anything else is ambiguous.
template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
AKUNU_MSL_INLINE constexpr T min(T x, T y) {
  return (y < x || x != x) ? y : x;
}
template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
AKUNU_MSL_INLINE constexpr T max(T x, T y) {
  return (x < y || x != x) ? y : x;
}
template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
AKUNU_MSL_INLINE constexpr T clamp(T x, T low, T high) {
  return min(max(x, low), high);
}
template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
AKUNU_MSL_INLINE constexpr T abs(T x) {
  return x < T(0) ? T(-x) : (x == T(0) ? T(0) : x);
}
template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
AKUNU_MSL_INLINE constexpr T select(T if_false, T if_true, bool condition) {
  return condition ? if_true : if_false;
}
template <class T, std::enable_if_t<is_number_v<T>, int> = 0>
AKUNU_MSL_INLINE T mix(T x, T y, T a) {
  return x + (y - x) * a;
}

#define AKUNU_ELEMENTWISE_2(name)                                                                  \
  template <class T, int N>                                                                        \
  AKUNU_MSL_INLINE vec<T, N> name(const vec<T, N>& a, const vec<T, N>& b) {                        \
    return for_each_element([](T x, T y) __attribute__((always_inline)) { return name(x, y); }, a, \
                            b);                                                                    \
  }                                                                                                \
  template <class T, int N>                                                                        \
  AKUNU_MSL_INLINE vec<T, N> name(const vec<T, N>& a, std::type_identity_t<T> b) {                 \
    return name(a, vec<T, N>(b));                                                                  \
  }
AKUNU_ELEMENTWISE_2(min)
AKUNU_ELEMENTWISE_2(max)
#undef AKUNU_ELEMENTWISE_2

template <class T, int N>
AKUNU_MSL_INLINE vec<T, N> clamp(const vec<T, N>& v, const vec<T, N>& low, const vec<T, N>& high) {
  return min(max(v, low), high);
}
template <class T, int N>
AKUNU_MSL_INLINE vec<T, N> clamp(const vec<T, N>& v, std::type_identity_t<T> low,
                                 std::type_identity_t<T> high) {
  return min(max(v, low), high);
}
template <class T, int N>
AKUNU_MSL_INLINE vec<T, N> abs(const vec<T, N>& v) {
  return for_each_element([](T x) __attribute__((always_inline)) { return abs(x); }, v);
}
template <class T, int N>
AKUNU_MSL_INLINE vec<T, N> select(const vec<T, N>& if_false, const vec<T, N>& if_true,
                                  const vec<bool, N>& condition) {
  return for_each_element([](T x, T y, bool c) __attribute__((always_inline)) { return c ? y : x; },
                          if_false, if_true, condition);
}

// Whole numbers.
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
AKUNU_MSL_INLINE constexpr T popcount(T x) {
  return static_cast<T>(__builtin_popcountll(static_cast<std::make_unsigned_t<T>>(x)));
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
AKUNU_MSL_INLINE constexpr T clz(T x) {
  constexpr int kBits = static_cast<int>(8 * sizeof(T));
  const uint64_t bits = static_cast<std::make_unsigned_t<T>>(x);
  return static_cast<T>(bits == 0 ? kBits : __builtin_clzll(bits) - (64 - kBits));
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
AKUNU_MSL_INLINE constexpr T ctz(T x) {
  const uint64_t bits = static_cast<std::make_unsigned_t<T>>(x);
  return static_cast<T>(bits == 0 ? static_cast<int>(8 * sizeof(T)) : __builtin_ctzll(bits));
}
AKUNU_MSL_INLINE constexpr uint32_t mulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
}
AKUNU_MSL_INLINE constexpr int32_t mulhi(int32_t a, int32_t b) {
  return static_cast<int32_t>((static_cast<int64_t>(a) * b) >> 32);
}

}  // namespace metal
}  // namespace AKUNU_METAL_BUILD
