// Quantises 32 numbers to int8 with one scale, the largest magnitude / 127: for matmuls in whole numbers,
// and for caches.
#pragma once

#include <stdint.h>

namespace akunu::cpu {

// Leaves the codes in q and the sums of both halves of them in half_sums, and returns the scale: NaN, with codes of
// 0, where a number is not finite, and 0 where the largest is too small to divide by. `values` are lost.
template <class Isa>
static inline float quantize8(typename Isa::Vector (&values)[4], int8_t* q, int16_t* half_sums) {
  using Vector = typename Isa::Vector;
  Vector largest = Isa::zero();
  Vector zero_or_nan = Isa::zero();  // 0 * x: NaN where x is infinite or NaN
  for (uint32_t j = 0; j < 4; ++j) {
    largest = Isa::maximum(Isa::absolute(values[j]), largest);
    zero_or_nan = Isa::multiply_add(values[j], Isa::zero(), zero_or_nan);
  }
  const float scale = Isa::max_lanes(largest) / 127.0f;
  const float reciprocal = 1.0f / scale;
  const bool has_no_finite = Isa::is_nan(zero_or_nan) != 0;
  if (has_no_finite || !(reciprocal <= __FLT_MAX__)) {
    // Too small to divide by, or not finite: a NaN must come out of the matmul, not vanish here.
    half_sums[0] = half_sums[1] = 0;
    __builtin_memset(q, 0, 32);
    return has_no_finite ? __builtin_nanf("") : 0.0f;
  }
  const Vector factor = Isa::broadcast(reciprocal);
  for (uint32_t j = 0; j < 4; ++j) values[j] = Isa::multiply(values[j], factor);
  Isa::store_rounded_bytes(q, half_sums, values);
  return scale;
}

}  // namespace akunu::cpu
