// The norm and the rotation of a head, shared by head_norm, rope, the cache writes and the prologue
// of attention: the same operations on the same numbers, so that fusing changes no bit.
#pragma once

#include "metal/kernels/common.h"

// 1 / sqrt(mean(x^2) + epsilon) of a head, in every lane: a SIMD-group's lanes 32 apart.
inline float head_factor(device const float* head, uint head_dim, float epsilon, uint lane) {
  float sum = 0.0f;
  for (uint i = lane; i < head_dim; i += 32) sum = fma(head[i], head[i], sum);
  return 1.0f / sqrt(simd_sum(sum) / float(head_dim) + epsilon);
}

// A head as it lies in memory, and what is to become of it.
struct Head {
  device const float* data;
  device const float* norm;  // weight of the per-head norm
  bool has_norm;
  float factor;  // 1 / rms, where there is a norm
};

inline Head head_of(device const float* data, device const float* norm, bool has_norm,
                    uint head_dim, float epsilon, uint lane) {
  const float factor = has_norm ? head_factor(data, head_dim, epsilon, lane) : 1.0f;
  return Head{data, norm, has_norm, factor};
}

inline float head_value(Head head, uint i) {
  return head.has_norm ? (head.data[i] * head.factor) * head.norm[i] : head.data[i];
}

// Which dimensions pair i rotates.
inline uint2 pair_of(uint i, uint n_pairs, uint style) {
  return style == kRopeHalves ? uint2(i, i + n_pairs) : uint2(2 * i, 2 * i + 1);
}

// Pair i of a head, normed and rotated.
inline float2 rotated_pair(Head head, device const float* angles, uint i, uint2 pair) {
  const float a = head_value(head, pair.x), b = head_value(head, pair.y);
  const float cosine = angles[2 * i], sine = angles[2 * i + 1];
  return float2(fma(a, cosine, -(b * sine)), fma(b, cosine, a * sine));
}
