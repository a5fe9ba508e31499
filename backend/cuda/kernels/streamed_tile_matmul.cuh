// The kernels of streamed_tile.cuh: matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of more than 16
// rows.
//
// Grid: x counts groups of 4 * kQuads input rows, y counts tiles of kTileRows<F> weight rows, z the blocks of a tile. Blocks next to each
// other in x read the same weights.
#pragma once

#include "cuda/kernels/streamed_matmul.cuh"
#include "cuda/kernels/streamed_tile.cuh"

namespace gpu {

// The sums of a tile's parts lie in the workspace after the rounded rows of all groups.
template <class F, uint kQuads>
__device__ inline TilePart tile_part(uchar* workspace, uint k, uint3 group, uint3 groups) {
  TilePart part;
  part.part = group.z;
  part.n_parts = groups.z;
  part.place = group.y * groups.x + group.x;
  part.sums = reinterpret_cast<float*>(workspace + groups.x * rounded_group_bytes<kQuads>(k)) +
              ulong(part.place) * kStreamWarps * kTileRows<F> * 4 * kQuads;
  return part;
}

template <class F, uint kQuads>
__device__ void streamed_tile_matmul(const float* input, const uchar* weight, float* out,
                                     const PassRange& pass, uchar* workspace,
                                     const MatmulParams& params, uchar* memory, uint3 group,
                                     uint3 groups, uint thread_index) {
  const uint k = params.k, n = params.n, first = kTileRows<F> * group.y;
  const auto place_of = [&](uint output, uint row) {
    return out + ulong(pass.first_row + kGroupRows<kQuads> * group.x + row) * n + first + output;
  };
  const auto addend = [&](uint output, uint row) {
    return !kAccumulate || first + output >= n ? 0.0f : *place_of(output, row);
  };
  const auto finish = [&](uint output, uint row, float meets, const auto& sum_at, const float*) {
    if (first + output >= n) return;
    const float sum = sum_at(output);
    *place_of(output, row) = kAccumulate ? meets + sum : sum;
  };
  stream_tile<F, kQuads>(memory,
                         stream_input<kQuads>(input, input, false, workspace, pass, group.x, k),
                         tile_part<F, kQuads>(workspace, k, group, groups), k, thread_index,
                         TileWeights<F>::of(weight, first, n, k), addend, finish);
}

template <class F, uint kQuads>
__device__ void streamed_tile_matmul_group(const float* input, const uchar* weight_0,
                                           const uchar* weight_1, const uchar* weight_2,
                                           const float* bias_0, const float* bias_1,
                                           const float* bias_2, float* out_0, float* out_1,
                                           float* out_2, const float* norm, const PassRange& pass,
                                           uchar* workspace, const uint* params, uchar* memory,
                                           uint3 group, uint3 groups, uint thread_index) {
  const uint k = params[0];
  const uint* const n = params + 1;
  const bool normalise = kIsBound10;
  uint tile = group.y;
  const uint member = take_member(n, kTileRows<F>, tile);
  if (member == kMaxGroup) return;
  const GroupMember of = choose_member(member, weight_0, weight_1, weight_2, bias_0, bias_1, bias_2,
                                       out_0, out_1, out_2, input);
  const uint n_own = n[member], first = kTileRows<F> * tile;
  const bool has_bias = is_bound(kGroupBias + member);
  const auto addend = [&](uint output, uint) {
    return has_bias && first + output < n_own ? of.bias[first + output] : 0.0f;
  };
  const auto finish = [&](uint output, uint row, float bias, const auto& sum_at,
                          const float* squares) {
    if (first + output >= n_own) return;
    float value = sum_at(output);
    if (normalise) value = value * inverse_rms(squares, k, as_type<float>(params[1 + kMaxGroup]));
    if (has_bias) value = value + bias;
    of.out[ulong(pass.first_row + kGroupRows<kQuads> * group.x + row) * n_own + first + output] =
        value;
  };
  const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  stream_tile<F, kQuads>(
      memory, stream_input<kQuads>(input, norm_weight, normalise, workspace, pass, group.x, k),
      tile_part<F, kQuads>(workspace, k, group, groups), k, thread_index,
      TileWeights<F>::of(of.weight, first, n_own, k), addend, finish);
}

// Half of a tile are rows of gate, the other half the same rows of up. Where their formats differ, each of two launches has tiles of one
// of them.
template <class F, uint kQuads>
__device__ void streamed_tile_matmul_gated(const float* input, const uchar* gate, const uchar* up,
                                           const float* norm, float* out, const PassRange& pass,
                                           uchar* workspace, const NormGatedMatmulParams& params,
                                           uchar* memory, uint3 group, uint3 groups,
                                           uint thread_index) {
  const uint k = params.k, n = params.n;
  const uint n_outputs = part_of_gated() == 0 ? kTileRows<F> / 2 : kTileRows<F>,
             first = n_outputs * group.y;
  const TileWeights<F> weights =
      part_of_gated() == 0 ? TileWeights<F>::of_two(gate, up, first, n, k)
                           : TileWeights<F>::of(part_of_gated() == 1 ? gate : up, first, n, k);
  const auto place_of = [&](uint output, uint row) {
    return out + ulong(pass.first_row + kGroupRows<kQuads> * group.x + row) * n + first + output;
  };
  const auto gate_of = [&](uint output, uint row) {
    return part_of_gated() == 2 && first + output < n ? *place_of(output, row) : 0.0f;
  };
  const auto finish = [&](uint output, uint row, float gate_value, const auto& sum_at,
                          const float* squares) {
    if (output >= n_outputs || first + output >= n) return;
    const float factor = inverse_rms(squares, k, params.epsilon);
    float* to = place_of(output, row);
    const float value = sum_at(output) * factor;
    if (part_of_gated() == 1) {
      *to = value;
      return;
    }
    const float g = part_of_gated() == 2 ? gate_value : value;
    const float u = part_of_gated() == 2 ? value : sum_at(n_outputs + output) * factor;
    *to = (params.activation == kActivationSilu ? silu(g) : gelu_tanh(g)) * u;
  };
  stream_tile<F, kQuads>(
      memory, stream_input<kQuads>(input, norm, true, workspace, pass, group.x, k),
      tile_part<F, kQuads>(workspace, k, group, groups), k, thread_index, weights, gate_of, finish);
}

// A warp for each 16 weight rows, and four that copy.
template <class F>
constexpr uint kStreamedTileThreads = kTileRows<F> / kTileWarpRows * 32 + kCopyThreads;

#define AKUNU_STREAMED_TILE_QUADS(name, F, quads)                                                 \
  AKUNU_KERNEL(streamed_tile_matmul_##name##_q##quads,                                            \
               __launch_bounds__(kStreamedTileThreads<F>, 1)) {                                   \
    take_constants(launch);                                                                       \
    streamed_tile_matmul<F, quads>(launch.slot(0), launch.slot(1), launch.slot(2), launch.pass(), \
                                   launch.slot(24), launch.parameters(), launch.shared(0),        \
                                   block_index(), grid_size(), threadIdx.x);                      \
  }                                                                                               \
  AKUNU_KERNEL(streamed_tile_matmul_group_##name##_q##quads,                                      \
               __launch_bounds__(kStreamedTileThreads<F>, 1)) {                                   \
    take_constants(launch);                                                                       \
    streamed_tile_matmul_group<F, quads>(                                                         \
        launch.slot(0), launch.slot(1), launch.slot(2), launch.slot(3), launch.slot(4),           \
        launch.slot(5), launch.slot(6), launch.slot(7), launch.slot(8), launch.slot(9),           \
        launch.slot(10), launch.pass(), launch.slot(24), launch.numbers(), launch.shared(0),      \
        block_index(), grid_size(), threadIdx.x);                                                 \
  }                                                                                               \
  AKUNU_KERNEL(streamed_tile_matmul_gated_##name##_q##quads,                                      \
               __launch_bounds__(kStreamedTileThreads<F>, 1)) {                                   \
    take_constants(launch);                                                                       \
    streamed_tile_matmul_gated<F, quads>(launch.slot(0), launch.slot(1), launch.slot(2),          \
                                         launch.slot(3), launch.slot(4), launch.pass(),           \
                                         launch.slot(24), launch.parameters(), launch.shared(0),  \
                                         block_index(), grid_size(), threadIdx.x);                \
  }
// For up to 16 and 32 rows, and groups of 64.
#define AKUNU_STREAMED_TILES(name, F)   \
  AKUNU_STREAMED_TILE_QUADS(name, F, 4) \
  AKUNU_STREAMED_TILE_QUADS(name, F, 8) \
  AKUNU_STREAMED_TILE_QUADS(name, F, 16)

}  // namespace gpu
