// The rotation of one row's heads, shared by rope and the fused cache writes.
#pragma once

#include "core/kernel_params.h"

namespace akunu::cpu {

// Rotates the first 2 * n_pairs dimensions of `head` by the row's angles, cos and sin in turn.
// Every element takes the same three operations, in place or not, so fusing changes no bit.
template <class Isa>
static inline void rotate_head(float* head, const float* angles, uint32_t n_pairs, uint32_t style) {
  const uint32_t step = style == kRopeHalves ? 1 : 2;
  const uint32_t partner = style == kRopeHalves ? n_pairs : 1;
  for (uint32_t i = 0; i < n_pairs; ++i) {
    float& first = head[step * i];
    float& second = head[step * i + partner];
    const float a = first, b = second;
    const float cosine = angles[2 * i], sine = angles[2 * i + 1];
    first = a * cosine - b * sine;
    second = b * cosine + a * sine;
  }
}

}  // namespace akunu::cpu
