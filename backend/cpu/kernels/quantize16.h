// Quantises to q16_32: a block of 32 numbers becomes integers of 13 bits and a sign, with one scale that
// is a power of two.
//
// 1. The scale is 2^(e - 12), where e is the exponent of the largest magnitude of the block. So codes
//    are at most 2^13, and a sum of 32 products with the smaller codes of F16 numbers fits an int32.
// 2. Numbers with 11 significant bits, as F16 has, are exact down to a quarter of the largest power of
//    two in the block; those with 8, as BF16 has, down to a 32nd.
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

// Exponents as floats have them, with their bias. Below the smallest one the scale would not be a normal
// number, nor its reciprocal finite.
constexpr uint32_t kBias = 127, kSmallestExponent16 = kBias - 114, kCodeBits16 = 12;

static constexpr float power_of_two(uint32_t exponent) {
  return __builtin_bit_cast(float, exponent << 23);
}

template <class Isa>
static inline void quantize16(const typename Isa::Vector (&values)[4], int16_t* q, float* scale) {
  constexpr uint32_t kNotFinite = 255;
  uint32_t exponent = Isa::largest_magnitude(values) >> 23;
  if (exponent == kNotFinite) {  // a matmul has to show it
    *scale = __builtin_nanf("");
    __builtin_memset(q, 0, 32 * sizeof(*q));
    return;
  }
  if (exponent < kSmallestExponent16) exponent = kSmallestExponent16;
  *scale = power_of_two(exponent - kCodeBits16);
  const auto factor = Isa::broadcast(power_of_two(2 * kBias + kCodeBits16 - exponent));
  typename Isa::Vector codes[4];
  for (uint32_t j = 0; j < 4; ++j) codes[j] = Isa::multiply(values[j], factor);
  Isa::store_rounded_pairs(q, codes);
}

}  // namespace akunu::cpu
