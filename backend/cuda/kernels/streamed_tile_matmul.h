// The kernels of streamed_tile.h: matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of more than 16
// rows.
//
// Grid: x counts groups of 4 * kQuads input rows, y counts tiles of kTileRows<F> weight rows, z the blocks of a tile. Blocks next to each
// other in x read the same weights.
#pragma once

#include "cuda/kernels/streamed_matmul.h"

// The sums of a tile's parts lie in the workspace behind the rounded rows of all groups.
template <class F, uint kQuads>
inline TilePart tile_part(device uchar* workspace, uint k, uint3 group, uint3 groups) {
  TilePart part;
  part.part = group.z;
  part.n_parts = groups.z;
  part.place = group.y * groups.x + group.x;
  part.sums =
      reinterpret_cast<device float*>(workspace + groups.x * rounded_group_bytes<kQuads>(k)) +
      ulong(part.place) * kStreamWarps * kTileRows<F> * 4 * kQuads;
  return part;
}

template <class F, uint kQuads>
[[kernel]] void streamed_tile_matmul(
    device const float* input [[buffer(0)]], device const uchar* weight [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    device uchar* workspace [[buffer(24)]], constant MatmulParams& params [[buffer(25)]],
    threadgroup uchar* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) {
  const uint k = params.k, n = params.n, first = kTileRows<F> * group.y;
  const ulong row_bytes = ulong(k / kStreamWindow) * F::kWindowBytes;
  const auto row_at = [&](uint r) { return weight + min(first + r, n - 1) * row_bytes; };
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
  stream_tile<F, kQuads, kTileRows<F>>(
      memory, stream_input<kQuads>(input, input, false, workspace, pass, group.x, k),
      tile_part<F, kQuads>(workspace, k, group, groups), k, thread_index, row_at, addend, finish);
}

template <class F, uint kQuads>
[[kernel]] void streamed_tile_matmul_group(
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
  uint tile = group.y;
  const uint member = take_member(n, kTileRows<F>, tile);
  if (member == kMaxGroup) return;
  const GroupMember of = choose_member(member, weight_0, weight_1, weight_2, bias_0, bias_1, bias_2,
                                       out_0, out_1, out_2, input);
  const uint n_own = n[member], first = kTileRows<F> * tile;
  const bool has_bias = is_bound(kGroupBias + member);
  const auto row_at = [&](uint r) { return of.weight + min(first + r, n_own - 1) * row_bytes; };
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
  device const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  stream_tile<F, kQuads, kTileRows<F>>(
      memory, stream_input<kQuads>(input, norm_weight, normalise, workspace, pass, group.x, k),
      tile_part<F, kQuads>(workspace, k, group, groups), k, thread_index, row_at, addend, finish);
}

// A tile is 32 rows of gate and the same of up; where their formats differ, two launches have 64 rows of one of them.
template <class F, uint kQuads>
[[kernel]] void streamed_tile_matmul_gated(
    device const float* input [[buffer(0)]], device const uchar* gate [[buffer(1)]],
    device const uchar* up [[buffer(2)]], device const float* norm [[buffer(3)]],
    device float* out [[buffer(4)]], constant PassRange& pass [[buffer(23)]],
    device uchar* workspace [[buffer(24)]], constant NormGatedMatmulParams& params [[buffer(25)]],
    threadgroup uchar* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) {
  const uint k = params.k, n = params.n;
  const ulong row_bytes = ulong(k / kStreamWindow) * F::kWindowBytes;
  const uint n_outputs = kPart == 0 ? kTileRows<F> / 2 : kTileRows<F>, first = n_outputs * group.y;
  const auto row_at = [&](uint r) {
    const bool is_up = kPart == 2 || (kPart == 0 && r >= n_outputs);
    return (is_up ? up : gate) + min(first + r % n_outputs, n - 1) * row_bytes;
  };
  const auto place_of = [&](uint output, uint row) {
    return out + ulong(pass.first_row + kGroupRows<kQuads> * group.x + row) * n + first + output;
  };
  const auto gate_of = [&](uint output, uint row) {
    return kPart == 2 && first + output < n ? *place_of(output, row) : 0.0f;
  };
  const auto finish = [&](uint output, uint row, float gate_value, const auto& sum_at,
                          const float* squares) {
    if (output >= n_outputs || first + output >= n) return;
    const float factor = inverse_rms(squares, k, params.epsilon);
    device float* to = place_of(output, row);
    const float value = sum_at(output) * factor;
    if (kPart == 1) {
      *to = value;
      return;
    }
    const float g = kPart == 2 ? gate_value : value;
    const float u = kPart == 2 ? value : sum_at(n_outputs + output) * factor;
    *to = (params.activation == kActivationSilu ? silu(g) : gelu_tanh(g)) * u;
  };
  stream_tile<F, kQuads, kTileRows<F>>(
      memory, stream_input<kQuads>(input, norm, true, workspace, pass, group.x, k),
      tile_part<F, kQuads>(workspace, k, group, groups), k, thread_index, row_at, gate_of, finish);
}

#define AKUNU_STREAMED_TILE_QUADS(name, F, quads)                 \
  AKUNU_STREAMED_KIND(streamed_tile_matmul, name, F, quads)       \
  AKUNU_STREAMED_KIND(streamed_tile_matmul_group, name, F, quads) \
  AKUNU_STREAMED_KIND(streamed_tile_matmul_gated, name, F, quads)
// For up to 32 rows, and groups of 64.
#define AKUNU_STREAMED_TILES(name, F)   \
  AKUNU_STREAMED_TILE_QUADS(name, F, 8) \
  AKUNU_STREAMED_TILE_QUADS(name, F, 16)
