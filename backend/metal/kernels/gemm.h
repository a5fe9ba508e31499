// matmul and matmul_add of many rows (prompts), and matmul_group.
//
// Floor: 2 n k operations per row; the weights are read once per 64 rows. A threadgroup makes a
// tile of 64 columns and 16 rows per SIMD-group pair member: four SIMD-groups 64 x 64, two 32 x 64
// (few rows left); each SIMD-group owns 32 x 32, sixteen 8 x 8 matrices in registers. Per step of
// 32 along k the weights are unpacked to float32 in threadgroup memory, once for all rows of the
// tile, and the input beside them. Rows of the tiles are 36 floats apart, so that the eight rows of
// a matrix lie in different banks. 18 KB, two barriers per step; each element loaded from
// threadgroup memory serves four products. Apple's matrix units take float32 at the rate of half,
// so nothing is rounded on the way, and no activation overflows.
//
// k runs in steps of eight whatever the tile, and what lies outside the operands is 0: an output's
// bits depend neither on where in a tile it lies nor on the other rows.
#pragma once

#include <metal_simdgroup_matrix>

#include "metal/kernels/gemm_tile.h"
#include "metal/kernels/matmul.h"

constant constexpr uint kStride = 36;     // floats between rows of a tile
constant constexpr uint kOutStride = 64;  // of the results' tile, which takes the same memory

// The input's rows of a tile, one behind the other.
struct RowsInOrder {
  ulong first;
  ulong input(uint r) const { return first + r; }
};

// The tile of `n_rows` rows, whose r-th is `rows.input(r)` of the input, times `n_columns` rows of
// the weight from `weight_row` on. Its results are in `memory` when all threads return, kOutStride
// floats apart; `memory` holds max((64 + tile's rows) * kStride, tile's rows * kOutStride) floats.
template <class F, class Rows>
inline void multiply_matrices(device const float* input, Rows rows, uint n_rows, Planes weight,
                              uint weight_row, uint n_columns, uint k, threadgroup float* memory,
                              uint thread_index, uint simdgroup, uint n_simdgroups) {
  const uint n_threads = 32 * n_simdgroups;
  const uint tile_rows = 16 * n_simdgroups;
  threadgroup float* weights = memory;
  threadgroup float* inputs = memory + kTile * kStride;
  simdgroup_float8x8 sums[4][4];
#pragma unroll
  for (uint i = 0; i < 4; ++i)
#pragma unroll
    for (uint j = 0; j < 4; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  const uint own_row = simdgroup / 2 * 32, own_column = simdgroup % 2 * 32;
  const bool aligned = F::kBlock > 1 || k % 4 == 0;

  for (uint step = 0; step < k; step += kStep) {
    // Without this barrier the tiles would be written while a SIMD-group still multiplies.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint task = thread_index; task < 2 * kTile; task += n_threads) {
      const uint j = task / 2, half_step = task % 2;
      float4 q[4];
      float scale = 1.0f, minimum = 0.0f;
      for (uint piece = 0; piece < 4; ++piece) q[piece] = float4(0.0f);
      // Columns past the weight's end and weights past a row's are zeros, never read.
      if (j < n_columns && step + 16 * half_step < k) {
        F::unpack_16(F::row(weight, weight_row + j, k), step / 16 + half_step, k, q, scale,
                     minimum);
        finish_16<F>(q, scale, minimum);
      }
      threadgroup float4* to =
          reinterpret_cast<threadgroup float4*>(weights + j * kStride + 16 * half_step);
      for (uint piece = 0; piece < 4; ++piece) to[piece] = q[piece];
    }
    for (uint task = thread_index; task < 8 * tile_rows; task += n_threads) {
      const uint r = task / 8, i = task % 8 * 4;
      float4 x = float4(0.0f);
      if (r < n_rows) x = load_four(input + rows.input(r) * k, step + i, k, aligned);
      *reinterpret_cast<threadgroup float4*>(inputs + r * kStride + i) = x;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint i = 0; i < kStep; i += 8) {
      simdgroup_float8x8 a[4], b[4];
#pragma unroll
      for (uint m = 0; m < 4; ++m)
        simdgroup_load(a[m], inputs + (own_row + 8 * m) * kStride + i, kStride);
#pragma unroll
      for (uint m = 0; m < 4; ++m)
        simdgroup_load(b[m], weights + (own_column + 8 * m) * kStride + i, kStride, ulong2(0),
                       true);
#pragma unroll
      for (uint r = 0; r < 4; ++r)
#pragma unroll
        for (uint c = 0; c < 4; ++c)
          simdgroup_multiply_accumulate(sums[r][c], a[r], b[c], sums[r][c]);
    }
  }

  // The results' tile takes the memory of the other two: everyone must be through with them.
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint r = 0; r < 4; ++r)
#pragma unroll
    for (uint c = 0; c < 4; ++c)
      simdgroup_store(sums[r][c], memory + (own_row + 8 * r) * kOutStride + own_column + 8 * c,
                      kOutStride);
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Threadgroup `group.x` takes columns [64 group.x, ..), group.y rows.
template <class F>
inline void multiply_tile(device const float* input, Planes weight, device const float* bias,
                          bool has_bias, bool accumulate, device float* out, uint first_row,
                          uint n_rows, uint n, uint k, uint column, uint row,
                          threadgroup float* memory, uint thread_index, uint simdgroup,
                          uint n_simdgroups) {
  const uint tile_rows = 16 * n_simdgroups;
  multiply_matrices<F>(input, RowsInOrder{ulong(first_row) + row}, n_rows - row, weight, column,
                       n - column, k, memory, thread_index, simdgroup, n_simdgroups);
  for (uint task = thread_index; task < tile_rows * kTile; task += 32 * n_simdgroups) {
    const uint r = task / kTile, c = task % kTile;
    if (row + r >= n_rows || column + c >= n) continue;
    float value = memory[r * kOutStride + c];
    device float* to = out + ulong(first_row + row + r) * n + column + c;
    if (has_bias) value = value + bias[column + c];
    *to = accumulate ? *to + value : value;
  }
}

template <class F>
[[kernel]] void gemm(device const float* input [[buffer(0)]],
                     device const uchar* weight [[buffer(1)]], device float* out [[buffer(2)]],
                     device const uchar* second [[buffer(14), function_constant(kIsBound14)]],
                     device const uchar* third [[buffer(15), function_constant(kIsBound15)]],
                     constant PassRange& pass [[buffer(23)]],
                     constant MatmulParams& params [[buffer(25)]],
                     threadgroup float* memory [[threadgroup(0)]],
                     uint3 group [[threadgroup_position_in_grid]],
                     uint thread_index [[thread_index_in_threadgroup]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]],
                     uint n_simdgroups [[simdgroups_per_threadgroup]]) {
  Planes planes = one_plane(weight);
  if (kIsBound14) planes.second = second;
  if (kIsBound15) planes.third = third;
  multiply_tile<F>(input, planes, input, false, kAccumulate, out, pass.first_row, pass.n_rows,
                   params.n, params.k, group.x * kTile, group.y * 16 * n_simdgroups, memory,
                   thread_index, simdgroup, n_simdgroups);
}

// Tiles of the launch's members follow one another.
template <class F>
[[kernel]] void gemm_group(
    device const float* input [[buffer(0)]], device const uchar* weight_0 [[buffer(1)]],
    device const uchar* weight_1 [[buffer(2), function_constant(kIsBound2)]],
    device const uchar* weight_2 [[buffer(3), function_constant(kIsBound3)]],
    device const float* bias_0 [[buffer(4), function_constant(kIsBound4)]],
    device const float* bias_1 [[buffer(5), function_constant(kIsBound5)]],
    device const float* bias_2 [[buffer(6), function_constant(kIsBound6)]],
    device float* out_0 [[buffer(7)]],
    device float* out_1 [[buffer(8), function_constant(kIsBound8)]],
    device float* out_2 [[buffer(9), function_constant(kIsBound9)]],
    device const uchar* second_0 [[buffer(14), function_constant(kIsBound14)]],
    device const uchar* third_0 [[buffer(15), function_constant(kIsBound15)]],
    device const uchar* second_1 [[buffer(17), function_constant(kIsBound17)]],
    device const uchar* third_1 [[buffer(18), function_constant(kIsBound18)]],
    device const uchar* second_2 [[buffer(20), function_constant(kIsBound20)]],
    device const uchar* third_2 [[buffer(21), function_constant(kIsBound21)]],
    constant PassRange& pass [[buffer(23)]], constant MatmulGroupParams& params [[buffer(25)]],
    threadgroup float* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]]) {
  uint tile = group.x;
  const uint member = take_member(params.n, kTile, tile);
  if (member == kMaxGroup) return;
  Planes weight = one_plane(weight_0);
  device float* out = out_0;
  device const float* bias = input;  // as good as any where there is none
  if (kIsBound4 && member == 0) bias = bias_0;
  if (kIsBound14 && member == 0) weight.second = second_0;
  if (kIsBound15 && member == 0) weight.third = third_0;
  if (kIsBound2 && member == 1) {
    weight = one_plane(weight_1);
    out = out_1;
    if (kIsBound5) bias = bias_1;
    if (kIsBound17) weight.second = second_1;
    if (kIsBound18) weight.third = third_1;
  }
  if (kIsBound3 && member == 2) {
    weight = one_plane(weight_2);
    out = out_2;
    if (kIsBound6) bias = bias_2;
    if (kIsBound20) weight.second = second_2;
    if (kIsBound21) weight.third = third_2;
  }
  multiply_tile<F>(input, weight, bias, is_bound(4 + member), false, out, pass.first_row,
                   pass.n_rows, params.n[member], params.k, tile * kTile,
                   group.y * 16 * n_simdgroups, memory, thread_index, simdgroup, n_simdgroups);
}

#define AKUNU_GEMM(name, F)                                                   \
  template [[host_name("gemm_" #name)]] [[kernel]] decltype(gemm<F>) gemm<F>; \
  template [[host_name("gemm_group_" #name)]] [[kernel]] decltype(gemm_group<F>) gemm_group<F>;
