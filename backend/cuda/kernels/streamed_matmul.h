// The kernels of streamed_rows.h: matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of 1 to 16 rows,
// and the launches that round the input of several. Those of streamed_tile.h for more rows are in streamed_tile_matmul.h.
//
// Grid: multiprocessors; groups of 16 input rows; blocks that share a multiprocessor. kQuads: 0 for one row, else so many times
// four rows.
#pragma once

#include "cuda/kernels/group_member.h"
#include "metal/kernels/functions.h"

// generate.py replaces this by warpgroup.h, streamed_weights.h, rounded_rows.h and streamed_rows.h, whose function calls inputs_ready itself,
// after the first copies of weights. Weights and the workspace have to be aligned to 16 bytes.
inline void stream_tiles() { inputs_ready(); }
// Likewise, of streamed_tile.h.
inline void stream_tile() { inputs_ready(); }

// How shared memory is divided (StreamPlan).
constant uint kStreamPlan [[function_constant(6)]];
// Which weights a launch of norm_gated_matmul multiplies: 0 gate and up; where their formats differ, 1 gate or 2 up.
constant uint kPart [[function_constant(4)]];

// Input rows of a group: those that a launch's kernel has room for, or 16.
constant constexpr uint kStreamGroup = 16;
template <uint kQuads>
constant constexpr uint kGroupRows = kQuads > 4 ? 4 * kQuads : kStreamGroup;

template <uint kQuads>
inline StreamInput stream_input(device const float* input, device const float* norm, bool normalise,
                                device uchar* workspace, constant PassRange& pass, uint group,
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

inline StreamShare stream_share(uint3 group, uint3 groups) {
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
inline void round_stream_row(device const float* input, device const float* norm, bool normalise,
                             constant PassRange& pass, device uchar* workspace, uint k, uint block,
                             uint thread_index) {
  const uint group = block / (4 * kQuads), row = block % (4 * kQuads);
  const uint index = kGroupRows<kQuads> * group + row;
  round_row_of_several<kQuads>(input + ulong(pass.first_row + index) * k, norm, normalise, k,
                               workspace + group * rounded_group_bytes<kQuads>(k), row,
                               index < pass.n_rows, thread_index);
}

template <uint kQuads>
[[kernel]] void round_rows(device const float* input [[buffer(0)]],
                           constant PassRange& pass [[buffer(23)]],
                           device uchar* workspace [[buffer(24)]],
                           constant MatmulParams& params [[buffer(25)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  round_stream_row<kQuads>(input, input, false, pass, workspace, params.k, group.x, thread_index);
}

template <uint kQuads>
[[kernel]] void round_rows_of_group(device const float* input [[buffer(0)]],
                                    device const float* norm
                                    [[buffer(10), function_constant(kIsBound10)]],
                                    constant PassRange& pass [[buffer(23)]],
                                    device uchar* workspace [[buffer(24)]],
                                    constant uint* params [[buffer(25)]],
                                    uint3 group [[threadgroup_position_in_grid]],
                                    uint thread_index [[thread_index_in_threadgroup]]) {
  device const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  round_stream_row<kQuads>(input, norm_weight, kIsBound10, pass, workspace, params[0], group.x,
                           thread_index);
}

template <uint kQuads>
[[kernel]] void round_rows_of_gated(device const float* input [[buffer(0)]],
                                    device const float* norm [[buffer(3)]],
                                    constant PassRange& pass [[buffer(23)]],
                                    device uchar* workspace [[buffer(24)]],
                                    constant NormGatedMatmulParams& params [[buffer(25)]],
                                    uint3 group [[threadgroup_position_in_grid]],
                                    uint thread_index [[thread_index_in_threadgroup]]) {
  round_stream_row<kQuads>(input, norm, true, pass, workspace, params.k, group.x, thread_index);
}

// --- Multiplying ---------------------------------------------------------------------------------------

inline float inverse_rms(device const float* squares, uint k, float epsilon) {
  return 1.0f / sqrt(sum_of_squares(squares) / float(k) + epsilon);
}

template <class F, uint kQuads>
[[kernel]] void streamed_matmul(
    device const float* input [[buffer(0)]], device const uchar* weight [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    device uchar* workspace [[buffer(24)]], constant MatmulParams& params [[buffer(25)]],
    threadgroup uchar* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) {
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
      memory, StreamPlan::of(kStreamPlan),
      stream_input<kQuads>(input, input, false, workspace, pass, group.y, k),
      (n + kStreamTileRows - 1) / kStreamTileRows, k, stream_share(group, groups), thread_index,
      row_at, addend, finish);
}

// matmul_group, and norm_matmul_group where slot 10 is bound. Tiles of the launch's members follow one another.
template <class F, uint kQuads>
[[kernel]] void streamed_matmul_group(
    device const float* input [[buffer(0)]], device const uchar* weight_0 [[buffer(1)]],
    device const uchar* weight_1 [[buffer(2), function_constant(kIsBound2)]],
    device const uchar* weight_2 [[buffer(3), function_constant(kIsBound3)]],
    device const float* bias_0 [[buffer(4), function_constant(kIsBound4)]],
    device const float* bias_1 [[buffer(5), function_constant(kIsBound5)]],
    device const float* bias_2 [[buffer(6), function_constant(kIsBound6)]],
    device float* out_0 [[buffer(7)]],
    device float* out_1 [[buffer(8), function_constant(kIsBound8)]],
    device float* out_2 [[buffer(9), function_constant(kIsBound9)]],
    device const float* norm [[buffer(10), function_constant(kIsBound10)]],
    constant PassRange& pass [[buffer(23)]], device uchar* workspace [[buffer(24)]],
    constant uint* params [[buffer(25)]], threadgroup uchar* memory [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const uint k = params[0];
  constant uint* const n = params + 1;
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
  device const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  stream_tiles<F, kQuads, kStreamTileRows>(
      memory, StreamPlan::of(kStreamPlan),
      stream_input<kQuads>(input, norm_weight, normalise, workspace, pass, group.y, k), n_tiles, k,
      stream_share(group, groups), thread_index, row_at, addend, finish);
}

// norm_gated_matmul. A tile is eight rows of gate and the same of up; where their formats differ, two launches have 16
// rows of one of them.
template <class F, uint kQuads>
[[kernel]] void streamed_matmul_gated(
    device const float* input [[buffer(0)]], device const uchar* gate [[buffer(1)]],
    device const uchar* up [[buffer(2)]], device const float* norm [[buffer(3)]],
    device float* out [[buffer(4)]], constant PassRange& pass [[buffer(23)]],
    device uchar* workspace [[buffer(24)]], constant NormGatedMatmulParams& params [[buffer(25)]],
    threadgroup uchar* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) {
  const uint k = params.k, n = params.n;
  const ulong row_bytes = ulong(k / kStreamWindow) * F::kWindowBytes;
  const uint n_outputs = kPart == 0 ? kStreamTileRows / 2 : kStreamTileRows;
  const auto row_at = [&](uint tile, uint r) {
    const bool is_up = kPart == 2 || (kPart == 0 && r >= n_outputs);
    return (is_up ? up : gate) + min(n_outputs * tile + r % n_outputs, n - 1) * row_bytes;
  };
  const auto place_of = [&](uint tile, uint output, uint row) {
    return out + ulong(pass.first_row + kStreamGroup * group.y + row) * n + n_outputs * tile +
           output;
  };
  const auto gate_of = [&](uint tile, uint output, uint row) {
    return kPart == 2 && n_outputs * tile + output < n ? *place_of(tile, output, row) : 0.0f;
  };
  const auto finish = [&](uint tile, uint output, uint row, float gate_value, const auto& sum_at,
                          const float* squares) {
    if (output >= n_outputs || n_outputs * tile + output >= n) return;
    const float factor = inverse_rms(squares, k, params.epsilon);
    device float* to = place_of(tile, output, row);
    const float value = sum_at(output) * factor;
    if (kPart == 1) {
      *to = value;
      return;
    }
    const float g = kPart == 2 ? gate_value : value;
    const float u = kPart == 2 ? value : sum_at(n_outputs + output) * factor;
    *to = (params.activation == kActivationSilu ? silu(g) : gelu_tanh(g)) * u;
  };
  stream_tiles<F, kQuads, kStreamTileRows>(
      memory, StreamPlan::of(kStreamPlan),
      stream_input<kQuads>(input, norm, true, workspace, pass, group.y, k),
      (n + n_outputs - 1) / n_outputs, k, stream_share(group, groups), thread_index, row_at,
      gate_of, finish);
}

#define AKUNU_STREAMED_KIND(kind, name, F, quads) \
  template [[host_name(#kind "_" #name            \
                             "_q" #quads)]] [[kernel]] decltype(kind<F, quads>) kind<F, quads>;
#define AKUNU_STREAMED_QUADS(name, F, quads)                 \
  AKUNU_STREAMED_KIND(streamed_matmul, name, F, quads)       \
  AKUNU_STREAMED_KIND(streamed_matmul_group, name, F, quads) \
  AKUNU_STREAMED_KIND(streamed_matmul_gated, name, F, quads)
// For one row, up to four, eight and 16.
#define AKUNU_STREAMED_MATMUL(name, F) \
  AKUNU_STREAMED_QUADS(name, F, 0)     \
  AKUNU_STREAMED_QUADS(name, F, 1)     \
  AKUNU_STREAMED_QUADS(name, F, 2)     \
  AKUNU_STREAMED_QUADS(name, F, 4)
#define AKUNU_ROUND_KIND(kind, quads) \
  template [[host_name(#kind "_q" #quads)]] [[kernel]] decltype(kind<quads>) kind<quads>;
#define AKUNU_ROUND_ROWS(quads)                \
  AKUNU_ROUND_KIND(round_rows, quads)          \
  AKUNU_ROUND_KIND(round_rows_of_group, quads) \
  AKUNU_ROUND_KIND(round_rows_of_gated, quads)
