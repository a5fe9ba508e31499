// The rotation of one row's heads, shared by rope and the fused cache writes.
//
// 1. What it computes. Pairs (a, b) of a head: a cos - b sin, b cos + a sin.
// 2. What bounds it. Latency; the compiler vectorises pairs of halves.
// 3. What is done about it. Angles are deinterleaved once for all heads of a row.
#pragma once

#include "core/kernel_params.h"

namespace akunu::cpu {

// The cosines and sines of a row's pairs, kStep floats apart.
template <uint32_t kStep>
struct Angles {
  const float *cosines, *sines;
};
static inline Angles<2> interleaved(const float* angles) { return {angles, angles + 1}; }

// Cosines and sines apart, once for all heads of a row. `room` does not overlap `angles`, so that
// the compiler may vectorise.
static inline Angles<1> deinterleave(const float* __restrict angles, uint32_t n_pairs,
                                     float* __restrict room) {
  for (uint64_t i = 0; i < n_pairs;
       ++i) {  // 64 bits: a 32-bit 2 i might wrap, and would not be vectorised
    room[i] = angles[2 * i];
    room[n_pairs + i] = angles[2 * i + 1];
  }
  return {room, room + n_pairs};
}

// The index type of a loop over pairs that are kStep floats apart. With interleaved pairs GCC 12
// makes multiply-adds when it vectorises (vfmaddsub, in spite of -ffp-contract=off). A 32-bit
// index, which may wrap, keeps it from vectorising.
template <uint32_t kStep>
struct PairIndex {
  using Type = uint64_t;
};
template <>
struct PairIndex<2> {
  using Type = uint32_t;
};

// Pair i is a[kStep * i], b[kStep * i]. A function of its own, for __restrict: a and b share no
// element, so the compiler may vectorise.
template <class Isa, uint32_t kStep, uint32_t kAngleStep>
static inline void rotate_pairs(float* __restrict a, float* __restrict b,
                                const float* __restrict cosines, const float* __restrict sines,
                                uint32_t n_pairs) {
  for (typename PairIndex<kStep>::Type i = 0; i < n_pairs; ++i) {
    const float x = a[kStep * i], y = b[kStep * i];
    const float cosine = cosines[kAngleStep * i], sine = sines[kAngleStep * i];
    a[kStep * i] = x * cosine - y * sine;
    b[kStep * i] = y * cosine + x * sine;
  }
}

// Rotates the first 2 * n_pairs dimensions of `head` by the row's angles. Every element takes the same
// three operations, in place or not, so fusing changes no bit.
template <class Isa, uint32_t kAngleStep>
static inline void rotate_head(float* head, const Angles<kAngleStep>& by, uint32_t n_pairs,
                               uint32_t style) {
  if (style == kRopeHalves)
    rotate_pairs<Isa, 1, kAngleStep>(head, head + n_pairs, by.cosines, by.sines, n_pairs);
  else
    rotate_pairs<Isa, 2, kAngleStep>(head, head + 1, by.cosines, by.sines, n_pairs);
}

}  // namespace akunu::cpu
