// expert_matmul of a few rows: a row with each of the experts that it was given, out of a stack of weights.
//
// Floor: the weights' bytes of the chosen experts; others are not read. A pair is a row and one of its
// experts. Where there are fewer pairs than experts, threadgroups go by pairs, and those of the first
// pair with an expert do it for all; else they go by experts. A SIMD-group has kOutputs weight rows of
// its expert, and takes the expert's pairs kRows at a time. How they are multiplied: matvec.h, whose
// bits do not depend on which rows share an unpacked weight.
#pragma once

#include "metal/kernels/matvec.h"

// The first pair from `from` on that goes to the expert; kNone: there is none.
inline uint next_pair(device const ExpertRoute* routes, uint from, uint n_pairs, uint expert,
                      uint lane) {
  for (; from < n_pairs; from += 32) {
    const uint pair = from + lane;
    bool is_wanted = false;
    if (pair < n_pairs) is_wanted = routes[pair].expert == expert;
    const uint found = simd_min(is_wanted ? pair : kNone);
    if (found != kNone) return found;
  }
  return kNone;
}

// Grid: (blocks of outputs / SIMD-groups, pairs or experts).
template <class F, uint kRows>
[[kernel]] void expert_matvec(
    device const float* input [[buffer(0)]], device const uchar* weight [[buffer(1)]],
    device const ExpertRoute* routes [[buffer(2)]],
    device const float* bias [[buffer(3), function_constant(kIsBound3)]],
    device float* out [[buffer(4)]],
    device const uchar* second [[buffer(14), function_constant(kIsBound14)]],
    device const uchar* third [[buffer(15), function_constant(kIsBound15)]],
    constant PassRange& pass [[buffer(23)]], constant ExpertMatmulParams& params [[buffer(25)]],
    uint3 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint kOutputs = Outputs<kRows>::kCount;
  const uint n = params.n, k = params.k, n_chosen = params.n_chosen;
  const uint first = (group.x * n_simdgroups + simdgroup) * kOutputs;
  if (first >= n) return;
  const uint n_pairs = pass.n_rows * n_chosen;
  const ulong first_pair = ulong(pass.first_row) * n_chosen;
  routes += first_pair;
  inputs_ready();  // the routes are of the launch before this one
  uint expert = group.y;
  if (n_pairs <= params.n_experts) {
    expert = routes[group.y].expert;
    if (next_pair(routes, 0, group.y, expert, lane) != kNone) return;
  }
  Planes planes = one_plane(weight);
  if (kIsBound14) planes.second = second;
  if (kIsBound15) planes.third = third;
  typename F::Row weights[kOutputs];
  for (uint o = 0; o < kOutputs; ++o)
    weights[o] = F::row(planes, expert * n + min(first + o, n - 1), k);
  uint pair = next_pair(routes, 0, n_pairs, expert, lane);
  while (pair != kNone) {
    uint pairs[kRows];
    uint n_found = 0;
    for (uint m = 0; m < kRows; ++m) {
      pairs[m] = pair != kNone ? pair : pairs[0];
      if (pair == kNone) continue;
      ++n_found;
      pair = next_pair(routes, pair + 1, n_pairs, expert, lane);
    }
    Input inputs[kRows];
    for (uint m = 0; m < kRows; ++m)
      inputs[m] = input + (params.n_inputs == 1 ? pass.first_row + ulong(pairs[m] / n_chosen)
                                                : first_pair + pairs[m]) *
                              k;
    float sums[kRows][kOutputs], squares[kRows];
    multiply<F, kRows, kOutputs>(weights, inputs, input, false, k, lane, sums, squares);
    for (uint m = 0; m < kRows; ++m)
      for (uint o = 0; o < kOutputs; ++o)
        if (lane == m * kOutputs + o && m < n_found && first + o < n) {
          float value = sums[m][o];
          if (kIsBound3) value = value + bias[ulong(expert) * n + first + o];
          out[(first_pair + pairs[m]) * n + first + o] = value;
        }
  }
}

#define AKUNU_EXPERT_MATVEC(name, F)           \
  AKUNU_MATVEC_ROWS(expert_matvec, name, F, 1) \
  AKUNU_MATVEC_ROWS(expert_matvec, name, F, 4)
