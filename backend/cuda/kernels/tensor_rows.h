// matmul and what is fused with it, for 1 to 16 rows of large weights, on tensor cores.
//
// 1. One mma (m16n8k16) multiplies 16 weight rows by 8 input rows over 16 values of k; 9 to 16 input rows take two.
//    Quantised codes are exact in bfloat16, and an input is the exact sum of three bfloat16 numbers (split_input.h), so
//    all products are exact. The sum over 16 codes begins at 0; scale and minimum are then applied in float32.
// 2. k is divided into windows of 256. The kSplit warps of a block take the windows in turn, for the same 32 weight
//    rows, and their partial sums are added in the order of the warps. kSplit follows from the weight's shape alone, so
//    an input row has the same bits whatever other rows there are.
// 3. Weight bytes are copied unchanged to shared memory (cp.async), two windows ahead, the first ones before the
//    input is ready. The order of k within an mma is free as long as both operands have the same: lane t of
//    four takes numbers 4 t to 4 t + 3 of each run of 16, which lie in one 32-bit word of the weight.
// 4. Each lane splits the inputs that it multiplies into their three parts, in registers. With one input row all columns
//    of the mma are equal, so a warp splits the row's window once and keeps the parts in shared memory.
#pragma once

#include "cuda/kernels/group_member.h"
#include "metal/kernels/matvec.h"

// Warps of a block that share weight rows.
constant uint kSplit [[function_constant(6)]];

constant constexpr uint kRowTiles = 2, kTileRows = 16;
constant constexpr uint kWindowUnits = 8, kWindowStages = 2;
constant constexpr uint kStagedInputBytes = 2 * kWindowUnits * 4 * 32;

// What one of four lanes needs of a unit of 32 weights. kBytes: of a window of one weight row. load(row, unit, t): for
// lane t. codes(unit, run): its four codes of a run of 16, as bfloat16 numbers.
template <class F>
struct Quarter;

inline uint aligned_word(device const uchar* p) { return *reinterpret_cast<device const uint*>(p); }

// The weight rows of a lane, as an mma wants them: of each tile, lane l has rows l / 4 and l / 4 + 8.
template <class F>
struct TileRows {
  device const uchar* rows[kRowTiles][2];
  // Bytes of a window of one row in shared memory: the 16-byte pieces that it may touch. Their number is odd, so
  // that the rows that lanes read at the same time lie in different banks.
  static constant constexpr uint kPieces = (Quarter<F>::kBytes + 14 + 15) / 16;
  static constant constexpr uint kStride = 16 * (kPieces | 1);
  static constant constexpr uint kStageBytes = kRowTiles * kTileRows * kStride;
};

// Sets the lane's rows of one tile, whose first weight row is `first`. Rows past the end repeat the last one.
template <class F>
inline void rows_of(Planes weight, uint tile, uint first, uint n, uint k, uint lane,
                    thread TileRows<F>& own) {
  for (uint part = 0; part < 2; ++part)
    own.rows[tile][part] = F::row(weight, min(first + lane / 4 + 8 * part, n - 1), k);
}

// Windows are copied in aligned pieces of 16 bytes: so many bytes of the first piece lie before the window.
template <class F>
inline uint before_window(device const uchar* row, uint window) {
  return uint(reinterpret_cast<ulong>(row + window * Quarter<F>::kBytes) & 15u);
}

template <class F>
inline void copy_window(thread const TileRows<F>& own, uint window, uint row_bytes,
                        threadgroup uchar* to, uint lane) {
  using Tiles = TileRows<F>;
  const uint n_bytes = min(Quarter<F>::kBytes, row_bytes - window * Quarter<F>::kBytes);
#pragma unroll
  for (uint tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
    for (uint part = 0; part < 2; ++part) {
      const uint before = before_window<F>(own.rows[tile][part], window);
      device const uchar* from =
          own.rows[tile][part] + window * Quarter<F>::kBytes - before + lane % 4 * 16;
      threadgroup uchar* at =
          to + (tile * kTileRows + 8 * part + lane / 4) * Tiles::kStride + lane % 4 * 16;
#pragma unroll
      for (uint piece = 0; piece < Tiles::kPieces; piece += 4)
        if (16 * (piece + lane % 4) < before + n_bytes)
          copy_16_bytes(at + 16 * piece, from + 16 * piece, true);
    }
}

// Four numbers of an input row as three bfloat16 parts, the sum of their squares (for a norm), and the sum of the
// run of 16 that they belong to (for formats with a minimum).
struct InputQuarter {
  uint2 parts[3];
  float square, sum;
};
template <class F>
inline InputQuarter input_quarter(float4 x, float4 norm, bool normalise) {
  InputQuarter own;
  own.square = own.sum = 0.0f;
  if (normalise) {
    own.square = sum_of(x * x);
    x = x * norm;
  }
  if (F::kMinimum) {
    own.sum = sum_of(x);
    own.sum += simd_shuffle_xor(own.sum, 1);
    own.sum += simd_shuffle_xor(own.sum, 2);
  }
#pragma unroll
  for (uint part = 0; part < 3; ++part) {
    const uint low = pack_bfloat16(x.x, x.y), high = pack_bfloat16(x.z, x.w);
    own.parts[part] = uint2(low, high);
    x = float4(x.x - as_type<float>(low << 16), x.y - as_type<float>(low & 0xffff0000u),
               x.z - as_type<float>(high << 16), x.w - as_type<float>(high & 0xffff0000u));
  }
  return own;
}

// The same in shared memory, where there is one input row: [run of the window][lane of four].
inline void store_quarter(threadgroup uint4* at, InputQuarter own) {
  at[0] = uint4(own.parts[0].x, own.parts[0].y, own.parts[1].x, own.parts[1].y);
  at[1] = uint4(own.parts[2].x, own.parts[2].y, as_type<uint>(own.square), as_type<uint>(own.sum));
}
inline InputQuarter load_quarter(threadgroup const uint4* at) {
  const uint4 a = at[0], b = at[1];
  InputQuarter own;
  own.parts[0] = uint2(a.x, a.y);
  own.parts[1] = uint2(a.z, a.w);
  own.parts[2] = uint2(b.x, b.y);
  own.square = as_type<float>(b.z);
  own.sum = as_type<float>(b.w);
  return own;
}

// A lane's accumulators: the four that an mma gives it, for each tile and each eight input rows. kEights = 0: one
// input row.
template <uint kEights>
struct Found {
  static constant constexpr uint kMany = kEights == 0 ? 1 : kEights;
  static constant constexpr uint kColumns = kEights == 0 ? 1 : 8 * kEights;
  float sums[kRowTiles][kMany][4];
  float squares[kMany];
};

// Multiplies one run of 16: the warp's weight rows by its input rows.
template <class F, uint kEights>
inline void multiply_run_on_tensor_cores(thread const Quarter<F> (&codes)[kRowTiles][2],
                                         thread device const uchar* const (&rows)[kRowTiles][2],
                                         uint unit, uint run, uint k, uint lane,
                                         thread const InputQuarter (&inputs)[Found<kEights>::kMany],
                                         thread Found<kEights>& found) {
  float of_columns[Found<kEights>::kMany][2];
  if (F::kMinimum) {
#pragma unroll
    for (uint e = 0; e < Found<kEights>::kMany; ++e)
#pragma unroll
      for (uint i = 0; i < 2; ++i)
        of_columns[e][i] =
            kEights == 0 ? inputs[e].sum : simd_shuffle(inputs[e].sum, 8 * (lane % 4) + 4 * i);
  }
#pragma unroll
  for (uint tile = 0; tile < kRowTiles; ++tile) {
    float scale[2], minimum[2];
    uint2 own[2];
#pragma unroll
    for (uint part = 0; part < 2; ++part) {
      float4 unused[4];
      scale[part] = 1.0f;
      minimum[part] = 0.0f;
      F::unpack(rows[tile][part], F::load(rows[tile][part], unit, k), unit, run, k, unused,
                scale[part], minimum[part]);
      own[part] = codes[tile][part].codes(unit, run);
    }
    const uint a[4] = {own[0].x, own[1].x, own[0].y, own[1].y};
#pragma unroll
    for (uint e = 0; e < Found<kEights>::kMany; ++e) {
      float product[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
      for (uint part = 3; part-- > 0;)
        multiply_bfloat16(product, a, inputs[e].parts[part].x, inputs[e].parts[part].y);
#pragma unroll
      for (uint i = 0; i < 4; ++i) {
        if (kEights == 0 && i % 2 == 1) continue;
        thread float& sum = found.sums[tile][e][i];
        sum = fma(product[i], scale[i / 2], sum);
        if (F::kMinimum) sum = fma(minimum[i / 2], of_columns[e][i % 2], sum);
      }
    }
  }
}

// Where four numbers of a run lie in an input row.
template <class F>
inline uint quarter_at(uint window, uint unit, uint run, uint lane) {
  return F::position(kWindowUnits * window + unit, run, 0) + lane % 4 * 4;
}
inline float4 four_at(device const float* row, uint at) {
  return *reinterpret_cast<device const float4*>(row + at);
}

// Bytes of shared memory of a warp: kernel_table.cpp has the same.
template <class F>
inline uint warp_bytes(bool is_one_row) {
  return kWindowStages * TileRows<F>::kStageBytes + (is_one_row ? kStagedInputBytes : 0);
}

template <class F, uint kEights>
inline void multiply_windows(thread const TileRows<F>& own, device const float* input, uint n_rows,
                             device const float* norm, bool normalise, uint k,
                             threadgroup uchar* memory, uint split, uint lane,
                             thread Found<kEights>& found) {
  using Tiles = TileRows<F>;
  constexpr uint kMany = Found<kEights>::kMany;
  const uint n_units = k / 32, n_windows = (n_units + kWindowUnits - 1) / kWindowUnits;
  const uint row_bytes = k / 256 * Quarter<F>::kBytes + k % 256 / 32 * (Quarter<F>::kBytes / 8);
#pragma unroll
  for (uint stage = 0; stage < kWindowStages; ++stage) {
    const uint window = split + stage * kSplit;
    if (window < n_windows)
      copy_window<F>(own, window, row_bytes, memory + stage * Tiles::kStageBytes, lane);
    end_copies();
  }
#pragma unroll
  for (uint e = 0; e < kMany; ++e) {
    found.squares[e] = 0.0f;
#pragma unroll
    for (uint tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
      for (uint i = 0; i < 4; ++i) found.sums[tile][e][i] = 0.0f;
  }
  device const float* inputs[kMany];
#pragma unroll
  for (uint e = 0; e < kMany; ++e)
    inputs[e] = input + (kEights == 0 ? 0ul : ulong(min(8 * e + lane / 4, n_rows - 1)) * k);
  threadgroup uint4* const staged =
      reinterpret_cast<threadgroup uint4*>(memory + kWindowStages * Tiles::kStageBytes);
  // Input is loaded one step ahead of the mma: a whole window where there is one row, else a unit.
  float4 next[kMany][2], next_norm[2];
  const auto load_next = [&](uint window, uint unit) {
    const uint units = min(kWindowUnits, n_units - kWindowUnits * window);
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      if (kEights == 0) unit = 4 * i + lane / 8;  // run 8 i + lane / 4 of the window
      const uint at =
          quarter_at<F>(window, min(unit, units - 1), kEights == 0 ? lane / 4 % 2 : i, lane);
#pragma unroll
      for (uint e = 0; e < kMany; ++e) next[e][i] = four_at(inputs[e], at);
      if (normalise) next_norm[i] = four_at(norm, at);
    }
  };
  inputs_ready();
  if (split < n_windows) load_next(split, 0);
  uint stage = 0;
  for (uint window = split; window < n_windows; window += kSplit) {
    const uint units = min(kWindowUnits, n_units - kWindowUnits * window);
    if (kEights == 0) {
#pragma unroll
      for (uint i = 0; i < 2; ++i)
        store_quarter(staged + 2 * (32 * i + lane),
                      input_quarter<F>(next[0][i], next_norm[i], normalise));
      if (window + kSplit < n_windows) load_next(window + kSplit, 0);
    }
    wait_for_copies<kWindowStages - 1>();
    simdgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup uchar* const weights = memory + stage * Tiles::kStageBytes;
    device const uchar* rows[kRowTiles][2];
#pragma unroll
    for (uint tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
      for (uint part = 0; part < 2; ++part)
        rows[tile][part] = weights + (tile * kTileRows + 8 * part + lane / 4) * Tiles::kStride +
                           before_window<F>(own.rows[tile][part], window);
    constexpr uint kTogether = kEights == 2 ? 1 : 2;  // as there are registers for
#pragma unroll kTogether
    for (uint unit = 0; unit < units; ++unit) {
      Quarter<F> codes[kRowTiles][2];
#pragma unroll
      for (uint tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
        for (uint part = 0; part < 2; ++part)
          codes[tile][part] = Quarter<F>::load(rows[tile][part], unit, lane % 4);
      float4 x[kMany][2], norms[2];
      if (kEights != 0) {
#pragma unroll
        for (uint run = 0; run < 2; ++run) {
#pragma unroll
          for (uint e = 0; e < kMany; ++e) x[e][run] = next[e][run];
          norms[run] = next_norm[run];
        }
        if (unit + 1 < units)
          load_next(window, unit + 1);
        else if (window + kSplit < n_windows)
          load_next(window + kSplit, 0);
      }
#pragma unroll
      for (uint run = 0; run < 2; ++run) {
        InputQuarter quarters[kMany];
#pragma unroll
        for (uint e = 0; e < kMany; ++e) {
          if (kEights == 0)
            quarters[e] = load_quarter(staged + 2 * (4 * (2 * unit + run) + lane % 4));
          else
            quarters[e] = input_quarter<F>(x[e][run], norms[run], normalise);
          if (normalise) found.squares[e] += quarters[e].square;
        }
        multiply_run_on_tensor_cores<F, kEights>(codes, rows, unit, run, k, lane, quarters, found);
      }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const uint ahead = window + kWindowStages * kSplit;
    if (ahead < n_windows) copy_window<F>(own, ahead, row_bytes, weights, lane);
    end_copies();
    stage = stage + 1 == kWindowStages ? 0 : stage + 1;
  }
  wait_for_copies<0>();
  simdgroup_barrier(mem_flags::mem_threadgroup);
  // Partial sums for the block, [weight row][input row], and behind them the squares; they overwrite the weights.
  threadgroup float* const sums = reinterpret_cast<threadgroup float*>(memory);
  constexpr uint kColumns = Found<kEights>::kColumns;
#pragma unroll
  for (uint e = 0; e < kMany; ++e) {
    float square = found.squares[e];
    square += simd_shuffle_xor(square, 1);
    square += simd_shuffle_xor(square, 2);
    if (lane % 4 == 0 && (kEights != 0 || lane == 0))
      sums[kRowTiles * kTileRows * kColumns + 8 * e + lane / 4] = square;
#pragma unroll
    for (uint tile = 0; tile < kRowTiles; ++tile)
#pragma unroll
      for (uint i = 0; i < 4; ++i) {
        if (kEights == 0 && (i % 2 == 1 || lane % 4 != 0)) continue;
        const uint row = tile * kTileRows + lane / 4 + i / 2 * 8;
        const uint column = kEights == 0 ? 0 : 8 * e + lane % 4 * 2 + i % 2;
        sums[row * kColumns + column] = found.sums[tile][e][i];
      }
  }
}

// The partial sums of a block's warps, added up: kSplit warps share the same weight rows.
template <class F, uint kEights>
struct BlockMemory {
  threadgroup uchar* memory;
  static constant constexpr uint kColumns = Found<kEights>::kColumns;
  threadgroup uchar* of_warp(uint warp) const {
    return memory + warp * warp_bytes<F>(kEights == 0);
  }
  float total(uint first_warp, uint place) const {
    float sum = 0.0f;
    for (uint split = 0; split < kSplit; ++split)
      sum += reinterpret_cast<threadgroup const float*>(of_warp(first_warp + split))[place];
    return sum;
  }
  float sum(uint first_warp, uint row, uint column) const {
    return total(first_warp, row * kColumns + column);
  }
  float square(uint first_warp, uint column) const {
    return total(first_warp, kRowTiles * kTileRows * kColumns + column);
  }
};

// Which input rows and which weight rows a warp works on.
struct TensorShare {
  uint row, n_rows;              // of the input
  uint block;                    // of kRowTiles tiles of weight rows
  uint split, first_warp;        // of the warps that share it
  uint thread_index, n_threads;  // of those warps
};
inline TensorShare tensor_share_of(constant PassRange& pass, uint3 group, uint warp, uint n_warps,
                                   uint lane) {
  TensorShare share;
  share.row = pass.first_row + 16 * group.y;
  share.n_rows = min(16u, pass.n_rows - 16 * group.y);
  share.split = warp % kSplit;
  share.first_warp = warp - share.split;
  share.block = group.x * (n_warps / kSplit) + warp / kSplit;
  share.thread_index = 32 * share.split + lane;
  share.n_threads = 32 * kSplit;
  return share;
}

template <class F, uint kEights>
[[kernel]] void rows_matmul(
    device const float* input [[buffer(0)]], device const uchar* weight [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant MatmulParams& params [[buffer(25)]], threadgroup uchar* shared [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint warp [[simdgroup_index_in_threadgroup]],
    uint n_warps [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint kOutputs = kRowTiles * kTileRows;
  const TensorShare share = tensor_share_of(pass, group, warp, n_warps, lane);
  const uint first = share.block * kOutputs;
  const BlockMemory<F, kEights> memory{shared};
  if (first < params.n) {
    TileRows<F> rows;
    for (uint tile = 0; tile < kRowTiles; ++tile)
      rows_of<F>(one_plane(weight), tile, first + tile * kTileRows, params.n, params.k, lane, rows);
    Found<kEights> found;
    multiply_windows<F, kEights>(rows, input + ulong(share.row) * params.k, share.n_rows, input,
                                 false, params.k, memory.of_warp(warp), share.split, lane, found);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = share.thread_index; i < kOutputs * share.n_rows; i += share.n_threads) {
    const uint row = i % kOutputs, column = i / kOutputs;
    if (first + row >= params.n) continue;
    device float* to = out + ulong(share.row + column) * params.n + first + row;
    const float sum = memory.sum(share.first_warp, row, column);
    *to = kAccumulate ? *to + sum : sum;
  }
}

// matmul_group, and norm_matmul_group where slot 10 is bound, as matvec_group has them.
template <class F, uint kEights>
[[kernel]] void rows_matmul_group(
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
    constant PassRange& pass [[buffer(23)]], constant uint* params [[buffer(25)]],
    threadgroup uchar* shared [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint warp [[simdgroup_index_in_threadgroup]], uint n_warps [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint kOutputs = kRowTiles * kTileRows;
  const TensorShare share = tensor_share_of(pass, group, warp, n_warps, lane);
  const uint k = params[0];
  uint block = share.block;
  const uint member = take_member(params + 1, kOutputs, block);
  const bool normalise = kIsBound10;
  const BlockMemory<F, kEights> memory{shared};
  const uint first = block * kOutputs, n = member == kMaxGroup ? 0 : params[1 + member];
  const GroupMember of = choose_member(member, weight_0, weight_1, weight_2, bias_0, bias_1, bias_2,
                                       out_0, out_1, out_2, input);
  device const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  if (first < n) {
    TileRows<F> rows;
    for (uint tile = 0; tile < kRowTiles; ++tile)
      rows_of<F>(one_plane(of.weight), tile, first + tile * kTileRows, n, k, lane, rows);
    Found<kEights> found;
    multiply_windows<F, kEights>(rows, input + ulong(share.row) * k, share.n_rows, norm_weight,
                                 normalise, k, memory.of_warp(warp), share.split, lane, found);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool has_bias = is_bound(kGroupBias + member);
  for (uint i = share.thread_index; i < kOutputs * share.n_rows; i += share.n_threads) {
    const uint row = i % kOutputs, column = i / kOutputs;
    if (first + row >= n) continue;
    float value = memory.sum(share.first_warp, row, column);
    if (normalise) {
      const float squares = memory.square(share.first_warp, column);
      value = value * (1.0f / sqrt(squares / float(k) + as_type<float>(params[1 + kMaxGroup])));
    }
    if (has_bias) value = value + of.bias[first + row];
    of.out[ulong(share.row + column) * n + first + row] = value;
  }
}

// norm_gated_matmul. kPart 0: one tile of gate rows and one of up rows. kPart 1 or 2: two tiles of gate rows, or of
// up rows, where their formats differ.
template <class F, uint kEights>
[[kernel]] void rows_matmul_gated(
    device const float* input [[buffer(0)]], device const uchar* gate [[buffer(1)]],
    device const uchar* up [[buffer(2)]], device const float* norm [[buffer(3)]],
    device float* out [[buffer(4)]], constant PassRange& pass [[buffer(23)]],
    constant NormGatedMatmulParams& params [[buffer(25)]],
    threadgroup uchar* shared [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint warp [[simdgroup_index_in_threadgroup]], uint n_warps [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const TensorShare share = tensor_share_of(pass, group, warp, n_warps, lane);
  const uint n_outputs = kPart == 0 ? kTileRows : kRowTiles * kTileRows;
  const uint first = share.block * n_outputs;
  const BlockMemory<F, kEights> memory{shared};
  if (first < params.n) {
    TileRows<F> rows;
    for (uint tile = 0; tile < kRowTiles; ++tile) {
      const bool is_gate = kPart == 0 ? tile == 0 : kPart == 1;
      rows_of<F>(one_plane(is_gate ? gate : up), tile, first + (kPart == 0 ? 0 : tile * kTileRows),
                 params.n, params.k, lane, rows);
    }
    Found<kEights> found;
    multiply_windows<F, kEights>(rows, input + ulong(share.row) * params.k, share.n_rows, norm,
                                 true, params.k, memory.of_warp(warp), share.split, lane, found);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = share.thread_index; i < n_outputs * share.n_rows; i += share.n_threads) {
    const uint row = i % n_outputs, column = i / n_outputs;
    if (first + row >= params.n) continue;
    const float squares = memory.square(share.first_warp, column);
    const float factor = 1.0f / sqrt(squares / float(params.k) + params.epsilon);
    device float* to = out + ulong(share.row + column) * params.n + first + row;
    const float value = memory.sum(share.first_warp, row, column) * factor;
    if (kPart == 1) {
      *to = value;
    } else {
      const float g = kPart == 2 ? *to : value;
      const float u =
          kPart == 2 ? value : memory.sum(share.first_warp, kTileRows + row, column) * factor;
      *to = (params.activation == kActivationSilu ? silu(g) : gelu_tanh(g)) * u;
    }
  }
}

#define AKUNU_ROWS_KIND(kind, name, F, eights) \
  template [[host_name(#kind "_" #name         \
                             "_e" #eights)]] [[kernel]] decltype(kind<F, eights>) kind<F, eights>;
// For one row, up to eight, and up to 16.
#define AKUNU_TENSOR_ROWS(name, F)               \
  AKUNU_ROWS_KIND(rows_matmul, name, F, 0)       \
  AKUNU_ROWS_KIND(rows_matmul, name, F, 1)       \
  AKUNU_ROWS_KIND(rows_matmul, name, F, 2)       \
  AKUNU_ROWS_KIND(rows_matmul_group, name, F, 0) \
  AKUNU_ROWS_KIND(rows_matmul_group, name, F, 1) \
  AKUNU_ROWS_KIND(rows_matmul_group, name, F, 2) \
  AKUNU_ROWS_KIND(rows_matmul_gated, name, F, 0) \
  AKUNU_ROWS_KIND(rows_matmul_gated, name, F, 1) \
  AKUNU_ROWS_KIND(rows_matmul_gated, name, F, 2)
