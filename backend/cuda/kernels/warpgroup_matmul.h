// The kernels of warpgroup_tile.h: matmul, matmul_add and matmul_group of prompts on sm_90a.
//
// Grid: tiles of kRows input rows, tiles of 128 weight rows; neighbouring blocks read the same weights.
#pragma once

#include "cuda/kernels/group_member.h"

// generate.py puts warpgroup.h, warpgroup_weights.h and warpgroup_tile.h in the place of this.
inline void multiply_prompt_tile() {}

// What the workspace has before this launch's input, for other launches of the command. Bit 0: the split input
// (split_input.h); bit 1: the input rounded to f16.
constant uint kBehind [[function_constant(7)]];

template <uint kParts>
inline RoundedInput<kParts> rounded_input(device uchar* workspace, uint n_rows, uint k) {
  if (kBehind & 1u)
    workspace += (ulong(n_rows) * ((k + 31) / 32) * kSplitStepBytes + 255) / 256 * 256;
  const RoundedInput<1> halves = RoundedInput<1>{workspace, n_rows, k};
  if (kBehind & 2u) workspace = reinterpret_cast<device uchar*>(halves.factors() + halves.padded());
  return RoundedInput<kParts>{workspace, n_rows, k};
}

template <class F, uint kRows>
[[kernel]] void warpgroup_matmul(device const uchar* weight [[buffer(1)]],
                                 device float* out [[buffer(2)]],
                                 constant PassRange& pass [[buffer(23)]],
                                 device uchar* workspace [[buffer(24)]],
                                 constant MatmulParams& params [[buffer(25)]],
                                 threadgroup uchar* memory [[threadgroup(0)]],
                                 uint3 group [[threadgroup_position_in_grid]],
                                 uint thread_index [[thread_index_in_threadgroup]]) {
  const TileOutput to =
      TileOutput{out,   out,         pass.first_row,        pass.n_rows,    params.n,
                 false, kAccumulate, group.y * kWeightRows, group.x * kRows};
  multiply_prompt_tile<F, kRows>(rounded_input<F::kParts>(workspace, pass.n_rows, params.k), weight,
                                 to, memory, thread_index);
}

// Tiles of the launch's members follow one another.
template <class F, uint kRows>
[[kernel]] void warpgroup_matmul_group(
    device const uchar* weight_0 [[buffer(1)]],
    device const uchar* weight_1 [[buffer(2), function_constant(kIsBound2)]],
    device const uchar* weight_2 [[buffer(3), function_constant(kIsBound3)]],
    device const float* bias_0 [[buffer(4), function_constant(kIsBound4)]],
    device const float* bias_1 [[buffer(5), function_constant(kIsBound5)]],
    device const float* bias_2 [[buffer(6), function_constant(kIsBound6)]],
    device float* out_0 [[buffer(7)]],
    device float* out_1 [[buffer(8), function_constant(kIsBound8)]],
    device float* out_2 [[buffer(9), function_constant(kIsBound9)]],
    constant PassRange& pass [[buffer(23)]], device uchar* workspace [[buffer(24)]],
    constant MatmulGroupParams& params [[buffer(25)]], threadgroup uchar* memory [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  uint tile = group.y;
  const uint member = take_member(params.n, kWeightRows, tile);
  if (member == kMaxGroup) return;
  const GroupMember of = choose_member(member, weight_0, weight_1, weight_2, bias_0, bias_1, bias_2,
                                       out_0, out_1, out_2, out_0);
  const TileOutput to = TileOutput{of.out,
                                   of.bias,
                                   pass.first_row,
                                   pass.n_rows,
                                   params.n[member],
                                   is_bound(4 + member),
                                   false,
                                   tile * kWeightRows,
                                   group.x * kRows};
  multiply_prompt_tile<F, kRows>(rounded_input<F::kParts>(workspace, pass.n_rows, params.k),
                                 of.weight, to, memory, thread_index);
}

#define AKUNU_WARPGROUP_MATMUL_OF(name, F, rows)                                              \
  template [[host_name(                                                                       \
      "warpgroup_matmul_" #name                                                               \
      "_r" #rows)]] [[kernel]] decltype(warpgroup_matmul<F, rows>) warpgroup_matmul<F, rows>; \
  template [[host_name("warpgroup_matmul_group_" #name "_r" #rows)]]                          \
  [[kernel]] decltype(warpgroup_matmul_group<F, rows>) warpgroup_matmul_group<F, rows>;
// Of quantised weights, which take longer to unpack than to multiply.
#define AKUNU_WARPGROUP_MATMUL_OF_FEW(name, F) \
  AKUNU_WARPGROUP_MATMUL_OF(name, F, 32)       \
  AKUNU_WARPGROUP_MATMUL_OF(name, F, 64)
