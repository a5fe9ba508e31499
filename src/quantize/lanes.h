// Eight floats at a time, with the vector types of GCC and Clang: the search for scales spends all of
// its time in sums over 16 or 32 weights.
#pragma once

#include <cstddef>
#include <cstring>

#include "quantize/level.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

constexpr size_t kLanes = 8;

// One register, or two of four floats.
#ifdef __AVX2__
using Register = float __attribute__((vector_size(32)));
#else
using Register = float __attribute__((vector_size(16)));
#endif
constexpr size_t kRegisters = kLanes * sizeof(float) / sizeof(Register);

struct Lanes {
  Register part[kRegisters];
};

template <class Operation>
inline Lanes by_part(Operation operation) {
  Lanes result;
  for (size_t i = 0; i < kRegisters; ++i) result.part[i] = operation(i);
  return result;
}

inline Lanes all(float x) {
  return by_part([=](size_t) { return Register{} + x; });
}

inline Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

inline void store(float* to, const Lanes& lanes) { std::memcpy(to, &lanes, sizeof lanes); }

inline Lanes operator+(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] + b.part[i]; });
}
inline Lanes operator-(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] - b.part[i]; });
}
inline Lanes operator*(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] * b.part[i]; });
}
inline Lanes operator/(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] / b.part[i]; });
}
inline Lanes operator+(const Lanes& a, float b) { return a + all(b); }
inline Lanes operator-(const Lanes& a, float b) { return a - all(b); }
inline Lanes operator*(const Lanes& a, float b) { return a * all(b); }
inline Lanes& operator+=(Lanes& a, const Lanes& b) { return a = a + b; }

inline Lanes larger(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] > b.part[i] ? a.part[i] : b.part[i]; });
}
inline Lanes smaller(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] < b.part[i] ? a.part[i] : b.part[i]; });
}
// `yes` where a is above b, `no` elsewhere, also where one of them is not a number.
inline Lanes choose(const Lanes& a, const Lanes& b, const Lanes& yes, const Lanes& no) {
  return by_part([&](size_t i) { return a.part[i] > b.part[i] ? yes.part[i] : no.part[i]; });
}
inline Lanes magnitude(const Lanes& a) { return larger(a, all(0.0f) - a); }
inline Lanes clamp(const Lanes& x, float low, float high) {
  return smaller(larger(x, all(low)), all(high));
}

// `value` where x is above a limit, 0 elsewhere.
inline Lanes above(const Lanes& x, float limit, float value) {
  return by_part(
      [&](size_t i) { return x.part[i] > Register{} + limit ? Register{} + value : Register{}; });
}

inline float lane(const Lanes& lanes, size_t i) {
  constexpr size_t kEach = kLanes / kRegisters;
  return lanes.part[i / kEach][i % kEach];
}

// The same order whatever the registers are.
inline float sum(const Lanes& a) {
  using Half = float __attribute__((vector_size(16)));
  Half halves[2];
  std::memcpy(halves, &a, sizeof a);
  const Half pairs = halves[0] + halves[1];
  return (pairs[0] + pairs[2]) + (pairs[1] + pairs[3]);
}

inline float least(const Lanes& a) {
  float result = lane(a, 0);
  for (size_t i = 1; i < kLanes; ++i) result = lane(a, i) < result ? lane(a, i) : result;
  return result;
}
inline float most(const Lanes& a) {
  float result = lane(a, 0);
  for (size_t i = 1; i < kLanes; ++i) result = lane(a, i) > result ? lane(a, i) : result;
  return result;
}

// To the nearest whole number, ties to even, for magnitudes below 2^22; larger ones have no fraction
// worth keeping.
inline Lanes nearest(const Lanes& x) { return (x + 12582912.0f) - 12582912.0f; }
inline float nearest(float x) { return (x + 12582912.0f) - 12582912.0f; }

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
