// The kernels of streamed_rows.cuh: matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of 1 to 16 rows,
// and the launches that round the input of several. Those of streamed_tile.cuh for more rows are in streamed_tile_matmul.cuh.
//
// Grid: multiprocessors; groups of 16 input rows; blocks that share a multiprocessor. kQuads: 0 for one row, else the rows
// divided by four.
#pragma once

#include "cuda/kernels/group_member.cuh"
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/streamed_rows.cuh"
#include "metal/kernels/functions.cuh"

namespace gpu {

// Weights and the workspace have to be aligned to 16 bytes. stream_tiles and stream_tile call inputs_ready themselves, after the
// first copies of weights.

// How shared memory is divided (StreamPlan).
__device__ inline uint stream_plan() { return akunu_constants.values[6]; }
// Which weights a launch of norm_gated_matmul multiplies: 0 gate and up; where their formats differ, 1 gate or 2 up.
__device__ inline uint part_of_gated() { return akunu_constants.values[4]; }

// Input rows of a group: those that a launch's kernel has room for, or 16.
constexpr uint kStreamGroup = 16;
template <uint kQuads>
constexpr uint kGroupRows = kQuads > 4 ? 4 * kQuads : kStreamGroup;

template <uint kQuads>
__device__ inline StreamInput stream_input(const float* input, const float* norm, bool normalise,
                                           uchar* workspace, const PassRange& pass, uint group,
                                           uint k) {
  StreamInput from;
  from.input = input + ulong(pass.first_row + kGroupRows<kQuads> * group) * k;
  from.norm = norm;
  from.normalise = normalise;
  from.group = workspace;
  if (kQuads != 0) from.group = workspace + group * rounded_group_bytes<kQuads>(k);
  from.n_rows = min(kGroupRows<kQuads>, pass.n_rows - kGroupRows<kQuads> * group);
  return from;
}

__device__ inline StreamShare stream_share(uint3 group, uint3 groups) {
  StreamShare share;
  share.multiprocessor = group.x;
  share.n_multiprocessors = groups.x;
  share.part = group.z;
  share.n_parts = groups.z;
  return share;
}

// --- Rounding ----------------------------------------------------------------------------------------

// Grid: rows of whole groups; a block has a row.
template <uint kQuads>
__device__ inline void round_stream_row(const float* input, const float* norm, bool normalise,
                                        const PassRange& pass, uchar* workspace, uint k, uint block,
                                        uint thread_index) {
  const uint group = block / (4 * kQuads), row = block % (4 * kQuads);
  const uint index = kGroupRows<kQuads> * group + row;
  round_row_of_several<kQuads>(input + ulong(pass.first_row + index) * k, norm, normalise, k,
                               workspace + group * rounded_group_bytes<kQuads>(k), row,
                               index < pass.n_rows, thread_index);
}

template <uint kQuads>
__device__ void round_rows(const float* input, const PassRange& pass, uchar* workspace,
                           const MatmulParams& params, uint3 group, uint thread_index) {
  round_stream_row<kQuads>(input, input, false, pass, workspace, params.k, group.x, thread_index);
}

template <uint kQuads>
__device__ void round_rows_of_group(const float* input, const float* norm, const PassRange& pass,
                                    uchar* workspace, const uint* params, uint3 group,
                                    uint thread_index) {
  const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  round_stream_row<kQuads>(input, norm_weight, kIsBound10, pass, workspace, params[0], group.x,
                           thread_index);
}

template <uint kQuads>
__device__ void round_rows_of_gated(const float* input, const float* norm, const PassRange& pass,
                                    uchar* workspace, const NormGatedMatmulParams& params,
                                    uint3 group, uint thread_index) {
  round_stream_row<kQuads>(input, norm, true, pass, workspace, params.k, group.x, thread_index);
}

// --- Multiplying ---------------------------------------------------------------------------------------

__device__ inline float inverse_rms(const float* squares, uint k, float epsilon) {
  return 1.0f / sqrt(sum_of_squares(squares) / float(k) + epsilon);
}

template <class F, uint kQuads>
__device__ void streamed_matmul(const float* input, const uchar* weight, float* out,
                                const PassRange& pass, uchar* workspace, const MatmulParams& params,
                                uchar* memory, uint3 group, uint3 groups, uint thread_index) {
  const uint k = params.k, n = params.n;
  const ulong row_bytes = ulong(k / kStreamWindow) * F::kWindowBytes;
  const auto row_at = [&](uint tile, uint r) {
    return weight + min(kStreamTileRows * tile + r, n - 1) * row_bytes;
  };
  const auto place_of = [&](uint tile, uint output, uint row) {
    return out + ulong(pass.first_row + kStreamGroup * group.y + row) * n + kStreamTileRows * tile +
           output;
  };
  const auto addend = [&](uint tile, uint output, uint row) {
    if (!kAccumulate || kStreamTileRows * tile + output >= n) return 0.0f;
    return *place_of(tile, output, row);
  };
  const auto finish = [&](uint tile, uint output, uint row, float meets, const auto& sum_at,
                          const float*) {
    if (kStreamTileRows * tile + output >= n) return;
    const float sum = sum_at(output);
    *place_of(tile, output, row) = kAccumulate ? meets + sum : sum;
  };
  stream_tiles<F, kQuads, kStreamTileRows>(
      memory, StreamPlan::of(stream_plan()),
      stream_input<kQuads>(input, input, false, workspace, pass, group.y, k),
      (n + kStreamTileRows - 1) / kStreamTileRows, k, stream_share(group, groups), thread_index,
      row_at, addend, finish);
}

// matmul_group, and norm_matmul_group where slot 10 is bound. Tiles of the launch's members follow one another.
template <class F, uint kQuads>
__device__ void streamed_matmul_group(const float* input, const uchar* weight_0,
                                      const uchar* weight_1, const uchar* weight_2,
                                      const float* bias_0, const float* bias_1, const float* bias_2,
                                      float* out_0, float* out_1, float* out_2, const float* norm,
                                      const PassRange& pass, uchar* workspace, const uint* params,
                                      uchar* memory, uint3 group, uint3 groups, uint thread_index) {
  const uint k = params[0];
  const uint* const n = params + 1;
  const ulong row_bytes = ulong(k / kStreamWindow) * F::kWindowBytes;
  const bool normalise = kIsBound10;
  const auto member_of = [&](uint member) {
    return choose_member(member, weight_0, weight_1, weight_2, bias_0, bias_1, bias_2, out_0, out_1,
                         out_2, input);
  };
  const auto row_at = [&](uint tile, uint r) {
    const uint member = take_member(n, kStreamTileRows, tile);
    return member_of(member).weight + min(kStreamTileRows * tile + r, n[member] - 1) * row_bytes;
  };
  const auto addend = [&](uint tile, uint output, uint) {
    const uint member = take_member(n, kStreamTileRows, tile);
    const uint at = kStreamTileRows * tile + output;
    return is_bound(kGroupBias + member) && at < n[member] ? member_of(member).bias[at] : 0.0f;
  };
  const auto finish = [&](uint tile, uint output, uint row, float bias, const auto& sum_at,
                          const float* squares) {
    const uint member = take_member(n, kStreamTileRows, tile);
    const uint at = kStreamTileRows * tile + output;
    if (at >= n[member]) return;
    const GroupMember of = member_of(member);
    float value = sum_at(output);
    if (normalise) value = value * inverse_rms(squares, k, as_type<float>(params[1 + kMaxGroup]));
    if (is_bound(kGroupBias + member)) value = value + bias;
    of.out[ulong(pass.first_row + kStreamGroup * group.y + row) * n[member] + at] = value;
  };
  uint n_tiles = 0;
  for (uint member = 0; member < kMaxGroup; ++member)
    if ((kMembers >> member & 1u) != 0)
      n_tiles += (n[member] + kStreamTileRows - 1) / kStreamTileRows;
  const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  stream_tiles<F, kQuads, kStreamTileRows>(
      memory, StreamPlan::of(stream_plan()),
      stream_input<kQuads>(input, norm_weight, normalise, workspace, pass, group.y, k), n_tiles, k,
      stream_share(group, groups), thread_index, row_at, addend, finish);
}

// norm_gated_matmul. A tile is eight rows of gate and the same of up; where their formats differ, two launches have 16
// rows of one of them.
template <class F, uint kQuads>
__device__ void streamed_matmul_gated(const float* input, const uchar* gate, const uchar* up,
                                      const float* norm, float* out, const PassRange& pass,
                                      uchar* workspace, const NormGatedMatmulParams& params,
                                      uchar* memory, uint3 group, uint3 groups, uint thread_index) {
  const uint k = params.k, n = params.n;
  const ulong row_bytes = ulong(k / kStreamWindow) * F::kWindowBytes;
  const uint n_outputs = part_of_gated() == 0 ? kStreamTileRows / 2 : kStreamTileRows;
  const auto row_at = [&](uint tile, uint r) {
    const bool is_up = part_of_gated() == 2 || (part_of_gated() == 0 && r >= n_outputs);
    return (is_up ? up : gate) + min(n_outputs * tile + r % n_outputs, n - 1) * row_bytes;
  };
  const auto place_of = [&](uint tile, uint output, uint row) {
    return out + ulong(pass.first_row + kStreamGroup * group.y + row) * n + n_outputs * tile +
           output;
  };
  const auto gate_of = [&](uint tile, uint output, uint row) {
    return part_of_gated() == 2 && n_outputs * tile + output < n ? *place_of(tile, output, row)
                                                                 : 0.0f;
  };
  const auto finish = [&](uint tile, uint output, uint row, float gate_value, const auto& sum_at,
                          const float* squares) {
    if (output >= n_outputs || n_outputs * tile + output >= n) return;
    const float factor = inverse_rms(squares, k, params.epsilon);
    float* to = place_of(tile, output, row);
    const float value = sum_at(output) * factor;
    if (part_of_gated() == 1) {
      *to = value;
      return;
    }
    const float g = part_of_gated() == 2 ? gate_value : value;
    const float u = part_of_gated() == 2 ? value : sum_at(n_outputs + output) * factor;
    *to = (params.activation == kActivationSilu ? silu(g) : gelu_tanh(g)) * u;
  };
  stream_tiles<F, kQuads, kStreamTileRows>(
      memory, StreamPlan::of(stream_plan()),
      stream_input<kQuads>(input, norm, true, workspace, pass, group.y, k),
      (n + n_outputs - 1) / n_outputs, k, stream_share(group, groups), thread_index, row_at,
      gate_of, finish);
}

// For one row a block has one warp less, since nothing copies the input. For 16 rows a multiprocessor has one block.
template <uint kQuads>
constexpr uint kStreamedThreads = kQuads == 0 ? 288 : 320;
template <uint kQuads>
constexpr uint kStreamedBlocks = kQuads == 4 ? 1 : 2;

#define AKUNU_STREAMED_QUADS(name, F, quads)                                                 \
  AKUNU_KERNEL(streamed_matmul_##name##_q##quads,                                            \
               __launch_bounds__(kStreamedThreads<quads>, kStreamedBlocks<quads>)) {         \
    take_constants(launch);                                                                  \
    streamed_matmul<F, quads>(launch.slot(0), launch.slot(1), launch.slot(2), launch.pass(), \
                              launch.slot(24), launch.parameters(), launch.shared(0),        \
                              block_index(), grid_size(), threadIdx.x);                      \
  }                                                                                          \
  AKUNU_KERNEL(streamed_matmul_group_##name##_q##quads,                                      \
               __launch_bounds__(kStreamedThreads<quads>, kStreamedBlocks<quads>)) {         \
    take_constants(launch);                                                                  \
    streamed_matmul_group<F, quads>(                                                         \
        launch.slot(0), launch.slot(1), launch.slot(2), launch.slot(3), launch.slot(4),      \
        launch.slot(5), launch.slot(6), launch.slot(7), launch.slot(8), launch.slot(9),      \
        launch.slot(10), launch.pass(), launch.slot(24), launch.numbers(), launch.shared(0), \
        block_index(), grid_size(), threadIdx.x);                                            \
  }                                                                                          \
  AKUNU_KERNEL(streamed_matmul_gated_##name##_q##quads,                                      \
               __launch_bounds__(kStreamedThreads<quads>, kStreamedBlocks<quads>)) {         \
    take_constants(launch);                                                                  \
    streamed_matmul_gated<F, quads>(launch.slot(0), launch.slot(1), launch.slot(2),          \
                                    launch.slot(3), launch.slot(4), launch.pass(),           \
                                    launch.slot(24), launch.parameters(), launch.shared(0),  \
                                    block_index(), grid_size(), threadIdx.x);                \
  }
// For one row, up to four, eight and 16.
#define AKUNU_STREAMED_MATMUL(name, F) \
  AKUNU_STREAMED_QUADS(name, F, 0)     \
  AKUNU_STREAMED_QUADS(name, F, 1)     \
  AKUNU_STREAMED_QUADS(name, F, 2)     \
  AKUNU_STREAMED_QUADS(name, F, 4)
#define AKUNU_ROUND_ROWS(quads)                                                                 \
  AKUNU_KERNEL(round_rows_q##quads, ) {                                                         \
    inputs_ready();                                                                             \
    round_rows<quads>(launch.slot(0), launch.pass(), launch.slot(24), launch.parameters(),      \
                      block_index(), threadIdx.x);                                              \
  }                                                                                             \
  AKUNU_KERNEL(round_rows_of_group_q##quads, ) {                                                \
    take_constants(launch);                                                                     \
    inputs_ready();                                                                             \
    round_rows_of_group<quads>(launch.slot(0), launch.slot(10), launch.pass(), launch.slot(24), \
                               launch.numbers(), block_index(), threadIdx.x);                   \
  }                                                                                             \
  AKUNU_KERNEL(round_rows_of_gated_q##quads, ) {                                                \
    inputs_ready();                                                                             \
    round_rows_of_gated<quads>(launch.slot(0), launch.slot(3), launch.pass(), launch.slot(24),  \
                               launch.parameters(), block_index(), threadIdx.x);                \
  }

}  // namespace gpu
