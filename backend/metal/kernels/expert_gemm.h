// expert_matmul of many rows (prompts), in the tiles of gemm.h.
//
// Floor: 2 n k operations per pair of a row and one of its experts; the weights of an expert that has
// rows are read once per 64 of them, others not at all. A threadgroup makes tiles of 64 columns of one
// expert. The routes say which pairs those are: a SIMD-group looks through them, 32 at a time, and
// writes the numbers of the tile's pairs, in their order, to threadgroup memory; their input rows are
// gathered as they are loaded, and the results scattered as they are stored. So nothing is sorted by a
// launch in front. With more pairs than `group.z` has tiles for, where a router is skewed, a
// threadgroup makes one tile after the other.
//
// An output's bits are those of `gemm`: it matters neither where in a tile a pair lies nor who else
// has its expert.
#pragma once

#include "metal/kernels/gemm.h"

// The input's rows of a tile of pairs: of each pair one, or of all pairs of a row the same.
struct RowsOfPairs {
  threadgroup const uint* pairs;
  ulong first;
  uint pairs_of_input;
  ulong input(uint r) const { return first + pairs[r] / pairs_of_input; }
};

// Writes the expert's pairs from its `skip`-th on to `pairs`, `most` at most, and behind those their
// number. One SIMD-group does.
inline void find_pairs(device const ExpertRoute* routes, uint n_pairs, uint expert, uint skip,
                       uint most, threadgroup uint* pairs, uint lane) {
  uint found = 0;
  for (uint from = 0; from < n_pairs && found < skip + most; from += 32) {
    const uint pair = from + lane;
    uint is_wanted = 0;
    if (pair < n_pairs) is_wanted = routes[pair].expert == expert ? 1 : 0;
    const uint number = found + simd_prefix_exclusive_sum(is_wanted);
    if (is_wanted != 0 && number >= skip && number < skip + most) pairs[number - skip] = pair;
    found += simd_sum(is_wanted);
  }
  if (lane == 0) pairs[most] = found > skip ? min(found - skip, most) : 0;
}

// Grid: (tiles of columns, experts, tiles of pairs that are made at the same time).
template <class F>
[[kernel]] void expert_gemm(
    device const float* input [[buffer(0)]], device const uchar* weight [[buffer(1)]],
    device const ExpertRoute* routes [[buffer(2)]],
    device const float* bias [[buffer(3), function_constant(kIsBound3)]],
    device float* out [[buffer(4)]],
    device const uchar* second [[buffer(14), function_constant(kIsBound14)]],
    device const uchar* third [[buffer(15), function_constant(kIsBound15)]],
    constant PassRange& pass [[buffer(23)]], constant ExpertMatmulParams& params [[buffer(25)]],
    threadgroup float* memory [[threadgroup(0)]], threadgroup uint* pairs [[threadgroup(1)]],
    uint3 group [[threadgroup_position_in_grid]], uint3 n_groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint n = params.n, expert = group.y, column = group.x * kTile;
  const uint tile_rows = 16 * n_simdgroups, n_pairs = pass.n_rows * params.n_chosen;
  const ulong first_pair = ulong(pass.first_row) * params.n_chosen;
  const uint weight_row = expert * n + column;
  Planes planes = one_plane(weight);
  if (kIsBound14) planes.second = second;
  if (kIsBound15) planes.third = third;
  RowsOfPairs rows{pairs, first_pair, 1};
  if (params.n_inputs == 1) rows = RowsOfPairs{pairs, pass.first_row, params.n_chosen};
  for (uint skip = group.z * tile_rows;; skip += n_groups.z * tile_rows) {
    // Without this barrier the pairs would be written while a tile's results are still stored.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup == 0)
      find_pairs(routes + first_pair, n_pairs, expert, skip, tile_rows, pairs, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint n_found = pairs[tile_rows];
    if (n_found == 0) return;
    multiply_matrices<F>(input, rows, n_found, planes, weight_row, n - column, params.k, memory,
                         thread_index, simdgroup, n_simdgroups);
    for (uint task = thread_index; task < tile_rows * kTile; task += 32 * n_simdgroups) {
      const uint r = task / kTile, c = task % kTile;
      if (r >= n_found || column + c >= n) continue;
      float value = memory[r * kOutStride + c];
      if (kIsBound3) value = value + bias[weight_row + c];
      out[(first_pair + pairs[r]) * n + column + c] = value;
    }
  }
}

#define AKUNU_EXPERT_GEMM(name, F) \
  template [[host_name("expert_gemm_" #name)]] [[kernel]] decltype(expert_gemm<F>) expert_gemm<F>;
