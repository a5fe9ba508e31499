// The kernels of warpgroup_tile.cuh: matmul, matmul_add and matmul_group of prompts on sm_90a.
//
// Grid: tiles of kRows input rows, tiles of 128 weight rows; neighbouring blocks read the same weights.
#pragma once

#include "cuda/kernels/group_member.cuh"
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/split_input.cuh"
#include "cuda/kernels/warpgroup_tile.cuh"
#include "cuda/kernels/warpgroup_weights.cuh"

namespace gpu {

// What the workspace has before this launch's input, for other launches of the command. Bit 0: the split input
// (split_input.cuh); bit 1: the input rounded to f16.
__device__ inline uint behind() { return akunu_constants.values[7]; }

template <uint kParts>
__device__ inline RoundedInput<kParts> rounded_input(uchar* workspace, uint n_rows, uint k) {
  if (behind() & 1u)
    workspace += (ulong(n_rows) * ((k + 31) / 32) * kSplitStepBytes + 255) / 256 * 256;
  const RoundedInput<1> halves = RoundedInput<1>{workspace, n_rows, k};
  if (behind() & 2u) workspace = reinterpret_cast<uchar*>(halves.factors() + halves.padded());
  return RoundedInput<kParts>{workspace, n_rows, k};
}

template <class F, uint kRows>
__device__ void warpgroup_matmul(const uchar* weight, float* out, const PassRange& pass,
                                 uchar* workspace, const MatmulParams& params, uchar* memory,
                                 uint3 group, uint thread_index) {
  const TileOutput to =
      TileOutput{out,   out,         pass.first_row,        pass.n_rows,    params.n,
                 false, kAccumulate, group.y * kWeightRows, group.x * kRows};
  multiply_prompt_tile<F, kRows>(rounded_input<F::kParts>(workspace, pass.n_rows, params.k), weight,
                                 to, memory, thread_index);
}

// Tiles of the launch's members follow one another.
template <class F, uint kRows>
__device__ void warpgroup_matmul_group(const uchar* weight_0, const uchar* weight_1,
                                       const uchar* weight_2, const float* bias_0,
                                       const float* bias_1, const float* bias_2, float* out_0,
                                       float* out_1, float* out_2, const PassRange& pass,
                                       uchar* workspace, const MatmulGroupParams& params,
                                       uchar* memory, uint3 group, uint thread_index) {
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

// Two warpgroups multiply, and four warps copy.
constexpr uint kTileThreads = (kConsumers + 1) * kWarpgroupThreads;

#define AKUNU_WARPGROUP_MATMUL_OF(name, F, rows)                                                  \
  AKUNU_KERNEL(warpgroup_matmul_##name##_r##rows, __launch_bounds__(kTileThreads, 1)) {           \
    take_constants(launch);                                                                       \
    inputs_ready();                                                                               \
    warpgroup_matmul<F, rows>(launch.slot(1), launch.slot(2), launch.pass(), launch.slot(24),     \
                              launch.parameters(), launch.shared(0), block_index(), threadIdx.x); \
  }                                                                                               \
  AKUNU_KERNEL(warpgroup_matmul_group_##name##_r##rows, __launch_bounds__(kTileThreads, 1)) {     \
    take_constants(launch);                                                                       \
    inputs_ready();                                                                               \
    warpgroup_matmul_group<F, rows>(                                                              \
        launch.slot(1), launch.slot(2), launch.slot(3), launch.slot(4), launch.slot(5),           \
        launch.slot(6), launch.slot(7), launch.slot(8), launch.slot(9), launch.pass(),            \
        launch.slot(24), launch.parameters(), launch.shared(0), block_index(), threadIdx.x);      \
  }
// Of quantised weights.
#define AKUNU_WARPGROUP_MATMULS(name, F) \
  AKUNU_WARPGROUP_MATMUL_OF(name, F, 32) \
  AKUNU_WARPGROUP_MATMUL_OF(name, F, 64) \
  AKUNU_WARPGROUP_MATMUL_OF(name, F, 128)

}  // namespace gpu
