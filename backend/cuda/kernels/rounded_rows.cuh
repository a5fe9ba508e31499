// Input rows of matmuls with streamed weights, rounded to F16 (half_row in docs/kernels.md). The columns are divided into units of 32
// and windows of eight units; window w has class w % 8. The numbers of a class are scaled by a power of two that brings the largest of
// them to 2^14. streamed_rows.cuh and streamed_tile.cuh multiply rounded rows.
#pragma once

#include "cuda/kernels/streamed_weights.cuh"

namespace gpu {

constexpr uint kStreamWarps = 8, kStreamThreads = 32 * kStreamWarps;
constexpr uint kStreamWindow = 256, kWindowUnits = kStreamWindow / 32;

// Rounded input rows, in shared memory or in the workspace. A window is eight pieces of 32 F16 numbers in 64 bytes: a piece is B of two
// products. Lane t of four multiplies units 2 t and 2 t + 1 of a window, so that it reads their scales once. Piece p has eight
// numbers for it: of unit 2 t + p / 4, with part = p % 4, numbers 4 part and 4 part + 2 in word t, 4 part + 1 and 4 part + 3 in
// word 4 + t (first product), and the same of the unit's second 16 numbers in words 8 + t and 12 + t (second product). The 16
// bytes of words 4 i to 4 i + 3 are in the order of wgmma's 64-byte swizzle.
constexpr uint kInputBytes = 64;
// The scale of a class is 2^e, where its largest number is from 2^e to 2^(e + 1): that number is brought to 2^14.
constexpr float kOfSum = 1.0f / 16384.0f;
template <uint kQuads>
struct RoundedRows {
  static constexpr uint kRows = kQuads == 0 ? 1 : 4 * kQuads;
  static constexpr uint kAllBytes = kInputBytes * kRows;
  uchar* halves;  // [window][piece][row]
  // Which 16 bytes of a piece lie first.
  AKUNU_DEVICE static uint swizzle(uint piece, uint row) {
    return (kQuads == 0 ? piece : row) / 2 % 4;
  }
  AKUNU_DEVICE static uint* word(uchar* of_row, uint index, uint swizzled) {
    return reinterpret_cast<uint*>(of_row) + (index ^ 4 * swizzled);
  }
};
// The workspace has after a group of rounded rows: the scales of their sums, [class][row], and a sum of squares for each row and
// warp.
template <uint kQuads>
struct RowNumbers {
  static constexpr uint kRows = RoundedRows<kQuads>::kRows;
  float *scales, *squares;
  AKUNU_DEVICE static RowNumbers of(RoundedRows<kQuads> rows, uint k) {
    float* const scales = reinterpret_cast<float*>(rows.halves + k / 32 * rows.kAllBytes);
    return {scales, scales + kStreamWarps * kRows};
  }
};
template <uint kQuads>
AKUNU_DEVICE ulong rounded_group_bytes(uint k) {
  using Rows = RoundedRows<kQuads>;
  return ulong(k / 32) * Rows::kAllBytes + Rows::kRows * 2 * kStreamWarps * sizeof(float);
}

// The threads of a block round a row, multiplied by the norm's weights if there is a norm. Four lanes round a unit, as four lanes
// have a unit in a product. A warp rounds the windows of one class, so no warp waits for another. `ready` waits for the launch before:
// it is called before the first read of `input`, after the first loads of the norm's weights have started. Returns the scale of the
// warp's class divided by kOfSum; `squares` becomes the sum of the squares of this thread's numbers.
template <bool kNormalise, class Rounded, class Ready>
AKUNU_DEVICE float round_row_to_halves(const float* input, const float* norm, uint k, Rounded to,
                                       uint row, uint thread_index, const Ready& ready,
                                       float& squares) {
  // How many units of a thread stay in registers from the search for the maximum to the rounding. Rows with a norm are shorter, and
  // the norm's weights take registers, too.
  constexpr uint kKept = kNormalise ? 4 : 7, kAtOnce = 2, kTogether = kStreamThreads / 4;
  const uint n_units = k / 32, t = thread_index % 4, first = thread_index / 4;
  const auto load_unit = [&](const float* from, uint unit, float4(&numbers)[2]) {
    const float4* const at =
        reinterpret_cast<const float4*>(from + 32 * min(unit, n_units - 1)) + t;
    numbers[0] = at[0];
    numbers[1] = at[4];
  };
  const auto times_norm = [&](float4(&x)[2], const float4(&w)[2]) {
    if (kNormalise)
#pragma unroll
      for (uint i = 0; i < 2; ++i)
        x[i] = float4(x[i].x * w[i].x, x[i].y * w[i].y, x[i].z * w[i].z, x[i].w * w[i].w);
  };
  uint most = 0;
  squares = 0.0f;
  const auto add_square = [&](float x) { squares = fma(x, x, squares); };
  const auto see = [&](float x) { most = max(most, as_type<uint>(x) & 0x7fffffffu); };
  const auto look_at_unit = [&](uint unit, float4(&x)[2], const float4(&w)[2]) {
    if (unit >= n_units) return;
#pragma unroll
    for (uint i = 0; i < 2; ++i)
      if (kNormalise) {
        add_square(x[i].x);
        add_square(x[i].y);
        add_square(x[i].z);
        add_square(x[i].w);
      }
    times_norm(x, w);
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      see(x[i].x);
      see(x[i].y);
      see(x[i].z);
      see(x[i].w);
    }
  };
  float4 kept[kKept][2], weights[kAtOnce][2];
  if (kNormalise)
#pragma unroll
    for (uint i = 0; i < kAtOnce; ++i) load_unit(norm, first + kTogether * i, weights[i]);
  ready();
#pragma unroll
  for (uint i = 0; i < kKept; ++i)
    if (kTogether * (i / 2 * 2) < n_units) load_unit(input, first + kTogether * i, kept[i]);
#pragma unroll
  for (uint i = 0; i < kKept; ++i)
    if (kTogether * i < n_units) {
      look_at_unit(first + kTogether * i, kept[i], weights[i % kAtOnce]);
      if (i + kAtOnce < kKept && kNormalise)
        load_unit(norm, first + kTogether * (i + kAtOnce), weights[i % kAtOnce]);
    }
  for (uint unit = first + kTogether * kKept; unit < n_units; unit += kTogether) {
    float4 x[2], w[2];
    load_unit(input, unit, x);
    if (kNormalise) load_unit(norm, unit, w);
    look_at_unit(unit, x, w);
  }
  // The exponent of the largest number; infinity and NaN have the largest exponent.
  const uint exponent = max(simd_max(most) >> 23, 15u);
  const bool is_finite = exponent < 255;
  const float inverse = as_type<float>(is_finite ? (268 - exponent) << 23 : 0u);
  const auto round_unit = [&](uint unit, const float4(&x)[2]) {
    if (unit >= n_units) return;
    const uint piece = unit % 2 * 4 + t, word = unit % kWindowUnits / 2;
    uchar* const own = to.halves +
                       (unit / kWindowUnits * kWindowUnits + piece) * Rounded::kAllBytes +
                       kInputBytes * row;
    const uint swizzled = Rounded::swizzle(piece, row);
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      *Rounded::word(own, 8 * i + word, swizzled) = pack_halves(x[i].x * inverse, x[i].z * inverse);
      *Rounded::word(own, 8 * i + 4 + word, swizzled) =
          pack_halves(x[i].y * inverse, x[i].w * inverse);
    }
  };
#pragma unroll
  for (uint i = 0; i < kKept; ++i)
    if (kTogether * i < n_units) round_unit(first + kTogether * i, kept[i]);
  for (uint turn = kKept; kTogether * turn < n_units; ++turn) {
    float4 x[2], w[2];
    load_unit(input, first + kTogether * turn, x);
    if (kNormalise) load_unit(norm, first + kTogether * turn, w);
    times_norm(x, w);
    round_unit(first + kTogether * turn, x);
  }
  return as_type<float>(is_finite ? exponent << 23 : 0x7fc00000u);
}

// The sum over the warps of a block.
AKUNU_DEVICE float sum_of_squares(const float* of_warps) {
  float sum = 0.0f;
#pragma unroll
  for (uint warp = 0; warp < kStreamWarps; ++warp) sum += of_warps[warp];
  return sum;
}

template <class Rounded, class Ready>
AKUNU_DEVICE float round_row_to_halves(const float* input, const float* norm, bool normalise,
                                       uint k, Rounded to, uint row, uint thread_index,
                                       const Ready& ready, float& squares) {
  if (normalise)
    return round_row_to_halves<true>(input, norm, k, to, row, thread_index, ready, squares);
  return round_row_to_halves<false>(input, norm, k, to, row, thread_index, ready, squares);
}

// What a block does in the launch before a matmul of several rows: it rounds one row, or writes zeros where there is no such row.
template <uint kQuads>
AKUNU_DEVICE void round_row_of_several(const float* input, const float* norm, bool normalise,
                                       uint k, uchar* group, uint row, bool is_there,
                                       uint thread_index) {
  using Rows = RoundedRows<kQuads>;
  const Rows to{group};
  const uint warp = thread_index / 32, lane = thread_index % 32;
  float squares = 0.0f, scale = 0.0f;
  if (is_there) {
    scale = round_row_to_halves(
        input, norm, normalise, k, to, row, thread_index, [] { inputs_ready(); }, squares);
    squares = simd_sum(squares);
  } else {
    inputs_ready();  // the workspace may still be read
    for (uint i = warp; i < k / 32; i += kStreamWarps)
      if (lane < kInputBytes / 4)
        reinterpret_cast<uint*>(to.halves + i * Rows::kAllBytes + kInputBytes * row)[lane] = 0;
  }
  const auto numbers = RowNumbers<kQuads>::of(to, k);
  if (lane != 0) return;
  numbers.scales[warp * Rows::kRows + row] = scale;
  numbers.squares[row * kStreamWarps + warp] = squares;
}

}  // namespace gpu
