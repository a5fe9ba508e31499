// matmul and what is fused with it, for rows of the classes `single` and `few`.
//
// Floor: the weights' bytes, once for up to 16 rows; per weight about five operations to unpack and
// one per row. A SIMD-group takes kOutputs weight rows, so that what it loads of the input serves
// them all, and walks along k: a lane takes units of 32 weights (formats.h), neighbouring lanes
// neighbouring bytes. One sum over the SIMD-group ends it; no barrier, no threadgroup memory. Up to
// four rows share an unpacked weight in registers (kRows); for more, SIMD-groups of one threadgroup
// take four rows each and read the same weights at the same time, so that they come from memory
// once.
//
// The arithmetic of an output is one: what kRows and kOutputs are, and which other rows there are,
// changes no bit. Per run of 16: four `fma`s on four accumulators, their sum, times the scale,
// added; then the minimum times the sum of the inputs, added. So a term passes k / 512 + 13
// roundings at most.
//
// With a norm, the input is input * norm weight, and a lane squares what it loads: 1 / rms follows
// once the sums are there. No threadgroup reads the row twice, and none waits for another.
#pragma once

#include "metal/kernels/functions.h"
#include "metal/kernels/matmul.h"
#include "metal/kernels/matvec_input.h"

// Sums over k of kOutputs weight rows times kRows input rows, in every lane. `norm` is null without
// one; then `squares` stay 0.
template <class F, uint kRows, uint kOutputs>
inline void multiply(thread typename F::Row (&weights)[kOutputs], thread Input (&inputs)[kRows],
                     device const float* norm, bool normalise, uint k, uint lane,
                     thread float (&sums)[kRows][kOutputs], thread float (&squares)[kRows]) {
#pragma unroll
  for (uint m = 0; m < kRows; ++m) {
    squares[m] = 0.0f;
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) sums[m][o] = 0.0f;
  }
  const uint n_units = F::units(k);
  typename F::Raw raw[kOutputs];
#pragma unroll
  for (uint o = 0; o < kOutputs; ++o) raw[o] = F::load(weights[o], min(lane, n_units - 1), k);
  inputs_ready();  // weights are under way
  for (uint unit = lane; unit < n_units; unit += 32) {
    if (unit != lane) {
#pragma unroll
      for (uint o = 0; o < kOutputs; ++o) raw[o] = F::load(weights[o], unit, k);
    }
#pragma unroll
    for (uint run = 0; run < 2; ++run) {
      float4 q[kOutputs][4];
      float scale[kOutputs], minimum[kOutputs];
#pragma unroll
      for (uint o = 0; o < kOutputs; ++o) {
        scale[o] = 1.0f;
        minimum[o] = 0.0f;
        F::unpack(weights[o], raw[o], unit, run, k, q[o], scale[o], minimum[o]);
      }
      float4 w[4];
      if (normalise) load_run<F>(norm, unit, run, k, w);
#pragma unroll
      for (uint m = 0; m < kRows; ++m) {
        float4 x[4];
        load_run<F>(inputs[m], unit, run, k, x);
        if (normalise) {
          float4 square = x[0] * x[0];
#pragma unroll
          for (uint piece = 1; piece < 4; ++piece) square = fma(x[piece], x[piece], square);
          squares[m] += sum_of(square);
#pragma unroll
          for (uint piece = 0; piece < 4; ++piece) x[piece] = x[piece] * w[piece];
        }
        float inputs_sum = 0.0f;
        if (F::kMinimum) inputs_sum = sum_of((x[0] + x[1]) + (x[2] + x[3]));
#pragma unroll
        for (uint o = 0; o < kOutputs; ++o) {
          float4 dot = q[o][0] * x[0];
#pragma unroll
          for (uint piece = 1; piece < 4; ++piece) dot = fma(q[o][piece], x[piece], dot);
          const float part = sum_of(dot);
          sums[m][o] = F::kScaled ? fma(scale[o], part, sums[m][o]) : sums[m][o] + part;
          if (F::kMinimum) sums[m][o] = fma(minimum[o], inputs_sum, sums[m][o]);
        }
      }
    }
  }
#pragma unroll
  for (uint m = 0; m < kRows; ++m)
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) sums[m][o] = simd_sum(sums[m][o]);
  if (normalise) {
#pragma unroll
    for (uint m = 0; m < kRows; ++m) squares[m] = simd_sum(squares[m]);
  }
}

// kRows = 1: the grid is (blocks / n_simdgroups, rows). kRows = 4: (.., rows / 16), and the
// SIMD-groups of a threadgroup are quads of rows, then blocks; `quads` follows the rows of the
// launch, as on the host.
template <uint kRows>
inline Share share_of(constant PassRange& pass, uint3 group, uint simdgroup, uint n_simdgroups) {
  Share share;
  if (kRows == 1) {
    share.row = pass.first_row + group.y;
    share.n_rows = 1;
    share.block = group.x * n_simdgroups + simdgroup;
  } else {
    const uint quads = (min(pass.n_rows, 16u) + kRows - 1) / kRows;
    const uint first = group.y * 16 + simdgroup % quads * kRows;
    share.row = pass.first_row + first;
    share.n_rows = first < pass.n_rows ? min(kRows, pass.n_rows - first) : 0;
    share.block = group.x * (n_simdgroups / quads) + simdgroup / quads;
  }
  return share;
}

// Rows and outputs that are not there repeat the last one: their results are thrown away, and
// nothing outside the operands is read.
template <uint kRows>
inline void input_rows(device const float* input, Share share, uint k,
                       thread Input (&inputs)[kRows]) {
  for (uint m = 0; m < kRows; ++m)
    inputs[m] = input + ulong(share.row + min(m, share.n_rows - 1)) * k;
}
template <class F, uint kOutputs>
inline void weight_rows(Planes weight, uint first, uint n, uint k,
                        thread typename F::Row (&weights)[kOutputs]) {
  for (uint o = 0; o < kOutputs; ++o) weights[o] = F::row(weight, min(first + o, n - 1), k);
}

// The members of a group in the second of two formats: bit m.
constant uint kSecond [[function_constant(5)]];
// Of norm_gated_matmul: 0 both weights; where their formats differ, 1 the gate, left in `out`, and
// then 2 the rest.
constant uint kPart [[function_constant(4)]];

// Weight rows per SIMD-group.
template <uint kRows>
struct Outputs {
  static constant constexpr uint kCount = kRows == 1 ? 4 : 2;
};

template <class F, uint kRows, uint kOutputs = Outputs<kRows>::kCount>
[[kernel]] void matvec(device const float* input [[buffer(0)]],
                       device const uchar* weight [[buffer(1)]], device float* out [[buffer(2)]],
                       device const uchar* second [[buffer(14), function_constant(kIsBound14)]],
                       device const uchar* third [[buffer(15), function_constant(kIsBound15)]],
                       constant PassRange& pass [[buffer(23)]],
                       constant MatmulParams& params [[buffer(25)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint n_simdgroups [[simdgroups_per_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]]) {
  const Share share = share_of<kRows>(pass, group, simdgroup, n_simdgroups);
  const uint first = share.block * kOutputs;
  if (share.n_rows == 0 || first >= params.n) return;
  Planes planes = one_plane(weight);
  if (kIsBound14) planes.second = second;
  if (kIsBound15) planes.third = third;
  Input inputs[kRows];
  typename F::Row weights[kOutputs];
  input_rows<kRows>(input, share, params.k, inputs);
  weight_rows<F, kOutputs>(planes, first, params.n, params.k, weights);
  float sums[kRows][kOutputs], squares[kRows];
  multiply<F, kRows, kOutputs>(weights, inputs, input, false, params.k, lane, sums, squares);
  for (uint m = 0; m < kRows; ++m)
    for (uint o = 0; o < kOutputs; ++o)
      if (lane == m * kOutputs + o && m < share.n_rows && first + o < params.n) {
        device float* to = out + ulong(share.row + m) * params.n + first + o;
        *to = kAccumulate ? *to + sums[m][o] : sums[m][o];
      }
}

// A block of one member of a group: `first` to first + kOutputs of its n outputs.
template <class F, uint kRows, uint kOutputs>
inline void multiply_member(device const float* input, Planes weight, device const float* norm,
                            device const float* bias, bool has_bias, device float* out,
                            constant uint* params, Share share, uint first, uint n, uint lane) {
  const uint k = params[0];
  Input inputs[kRows];
  typename F::Row weights[kOutputs];
  input_rows<kRows>(input, share, k, inputs);
  weight_rows<F, kOutputs>(weight, first, n, k, weights);
  float sums[kRows][kOutputs], squares[kRows];
  const bool normalise = kIsBound10;
  multiply<F, kRows, kOutputs>(weights, inputs, norm, normalise, k, lane, sums, squares);
  for (uint m = 0; m < kRows; ++m) {
    float factor = 1.0f;
    if (normalise)
      factor = 1.0f / sqrt(squares[m] / float(k) + as_type<float>(params[1 + kMaxGroup]));
    for (uint o = 0; o < kOutputs; ++o)
      if (lane == m * kOutputs + o && m < share.n_rows && first + o < n) {
        float value = sums[m][o];
        if (normalise) value = value * factor;
        if (has_bias) value = value + bias[first + o];
        out[ulong(share.row + m) * n + first + o] = value;
      }
  }
}

// Whether two formats are one: then nothing is instantiated for a second.
template <class F, class G>
struct Differ {
  static constant constexpr bool kDo = true;
};
template <class F>
struct Differ<F, F> {
  static constant constexpr bool kDo = false;
};

// matmul_group, and norm_matmul_group where slot 10 is bound: their parameters begin alike, k and
// n[kMaxGroup]; the second's go on with epsilon. Blocks of the launch's members follow one another. Members
// of kSecond are in format G, the others in F.
template <class F, class G, uint kRows, uint kOutputs = Outputs<kRows>::kCount>
[[kernel]] void matvec_group(
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
    device const uchar* second_0 [[buffer(14), function_constant(kIsBound14)]],
    device const uchar* third_0 [[buffer(15), function_constant(kIsBound15)]],
    device const uchar* second_1 [[buffer(17), function_constant(kIsBound17)]],
    device const uchar* third_1 [[buffer(18), function_constant(kIsBound18)]],
    device const uchar* second_2 [[buffer(20), function_constant(kIsBound20)]],
    device const uchar* third_2 [[buffer(21), function_constant(kIsBound21)]],
    constant PassRange& pass [[buffer(23)]], constant uint* params [[buffer(25)]],
    uint3 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const Share share = share_of<kRows>(pass, group, simdgroup, n_simdgroups);
  if (share.n_rows == 0) return;
  uint block = share.block;
  const uint member = take_member(params + 1, kOutputs, block);
  if (member == kMaxGroup) return;
  const uint n = params[1 + member];
  const uint first = block * kOutputs;
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
  device const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  const bool has_bias = is_bound(kGroupBias + member);
  if (Differ<F, G>::kDo && (kSecond >> member & 1u) != 0)
    multiply_member<G, kRows, kOutputs>(input, weight, norm_weight, bias, has_bias, out, params,
                                        share, first, n, lane);
  else
    multiply_member<F, kRows, kOutputs>(input, weight, norm_weight, bias, has_bias, out, params,
                                        share, first, n, lane);
}

// norm_gated_matmul: rows of both weights in one pass, as many of each as half a block. Parts 1 and
// 2 take whole blocks of one weight.
template <class F, uint kRows, uint kOutputs = Outputs<kRows>::kCount>
[[kernel]] void matvec_gated(
    device const float* input [[buffer(0)]], device const uchar* gate [[buffer(1)]],
    device const uchar* up [[buffer(2)]], device const float* norm [[buffer(3)]],
    device float* out [[buffer(4)]],
    device const uchar* gate_second [[buffer(14), function_constant(kIsBound14)]],
    device const uchar* gate_third [[buffer(15), function_constant(kIsBound15)]],
    device const uchar* up_second [[buffer(17), function_constant(kIsBound17)]],
    device const uchar* up_third [[buffer(18), function_constant(kIsBound18)]],
    constant PassRange& pass [[buffer(23)]], constant NormGatedMatmulParams& params [[buffer(25)]],
    uint3 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint kHalf = kOutputs / 2;
  const Share share = share_of<kRows>(pass, group, simdgroup, n_simdgroups);
  const uint n_outputs = kPart == 0 ? kHalf : kOutputs;
  const uint first = share.block * n_outputs;
  if (share.n_rows == 0 || first >= params.n) return;
  Input inputs[kRows];
  typename F::Row weights[kOutputs];
  input_rows<kRows>(input, share, params.k, inputs);
  Planes gate_planes = one_plane(gate), up_planes = one_plane(up);
  if (kIsBound14) gate_planes.second = gate_second;
  if (kIsBound15) gate_planes.third = gate_third;
  if (kIsBound17) up_planes.second = up_second;
  if (kIsBound18) up_planes.third = up_third;
  for (uint o = 0; o < kOutputs; ++o) {
    const uint j = min(first + o % n_outputs, params.n - 1);
    const bool is_gate = kPart == 0 ? o < kHalf : kPart == 1;
    weights[o] = is_gate ? F::row(gate_planes, j, params.k) : F::row(up_planes, j, params.k);
  }
  float sums[kRows][kOutputs], squares[kRows];
  multiply<F, kRows, kOutputs>(weights, inputs, norm, true, params.k, lane, sums, squares);
  for (uint m = 0; m < kRows; ++m) {
    const float factor = 1.0f / sqrt(squares[m] / float(params.k) + params.epsilon);
    for (uint o = 0; o < kOutputs; ++o)
      if (o < n_outputs && lane == m * kOutputs + o && m < share.n_rows && first + o < params.n) {
        device float* to = out + ulong(share.row + m) * params.n + first + o;
        const float value = sums[m][o] * factor;
        if (kPart == 1) {
          *to = value;
        } else {
          const float g = kPart == 2 ? *to : value;
          const float u = kPart == 2 ? value : sums[m][(kHalf + o) % kOutputs] * factor;
          *to = (params.activation == kActivationSilu ? silu(g) : gelu_tanh(g)) * u;
        }
      }
  }
}

#define AKUNU_MATVEC_ROWS(kind, name, F, rows) \
  template                                     \
      [[host_name(#kind "_" #name "_r" #rows)]] [[kernel]] decltype(kind<F, rows>) kind<F, rows>;
#define AKUNU_MATVEC_GROUP(name, F, G, rows) \
  template [[host_name(                      \
      "matvec_group_" #name                  \
      "_r" #rows)]] [[kernel]] decltype(matvec_group<F, G, rows>) matvec_group<F, G, rows>;
#define AKUNU_MATVEC(name, F)                 \
  AKUNU_MATVEC_ROWS(matvec, name, F, 1)       \
  AKUNU_MATVEC_ROWS(matvec, name, F, 4)       \
  AKUNU_MATVEC_GROUP(name, F, F, 1)           \
  AKUNU_MATVEC_GROUP(name, F, F, 4)           \
  AKUNU_MATVEC_ROWS(matvec_gated, name, F, 1) \
  AKUNU_MATVEC_ROWS(matvec_gated, name, F, 4)
// Two formats that files have side by side in a group.
#define AKUNU_MATVEC_PAIR(name, F, G) \
  AKUNU_MATVEC_GROUP(name, F, G, 1)   \
  AKUNU_MATVEC_GROUP(name, F, G, 4)
