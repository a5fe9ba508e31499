// The rotation of one row's heads, shared by rope and the fused cache writes.
#pragma once

#include "core/kernel_params.h"

namespace akunu::cpu {

// Pair i is a[kStep * i], b[kStep * i]; angles hold cos and sin in turn. Its own function, so that the
// compiler may take a and b, which share no element, for two arrays, and vectors.
template <class Isa, uint32_t kStep>
static inline void rotate_pairs(float* __restrict a, float* __restrict b,
                                const float* __restrict angles, uint32_t n_pairs) {
  for (uint32_t i = 0; i < n_pairs; ++i) {
    const float x = a[kStep * i], y = b[kStep * i];
    const float cosine = angles[2 * i], sine = angles[2 * i + 1];
    a[kStep * i] = x * cosine - y * sine;
    b[kStep * i] = y * cosine + x * sine;
  }
}

// Rotates the first 2 * n_pairs dimensions of `head` by the row's angles. Every element takes the same
// three operations, in place or not, so fusing changes no bit.
template <class Isa>
static inline void rotate_head(float* head, const float* angles, uint32_t n_pairs, uint32_t style) {
  if (style == kRopeHalves)
    rotate_pairs<Isa, 1>(head, head + n_pairs, angles, n_pairs);
  else
    rotate_pairs<Isa, 2>(head, head + 1, angles, n_pairs);
}

}  // namespace akunu::cpu
