// A few input rows times weight rows of floats: the micro-kernel of float matmuls, and of attention's scores.
//
// 1. What it computes. Every (input row, weight row) pair has one accumulator of eight lanes, and
//    adds its blocks in order of k, whatever tile it is computed in. So the bits of a result do
//    not depend on how many rows are computed beside it, nor on where a slice begins.
// 2. What bounds it. One row: memory. Several: the latency and throughput of FMA.
// 3. What is done about it. Tiles of R input rows x C weight rows are unrolled, so that
//    accumulators stay in registers. Weights are prefetched by the hardware, which predicts whole
//    rows; attention passes what comes next (`next`).
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

// How many vectors of a weight row are unpacked together.
template <class Format>
static constexpr uint32_t vectors_of() {
  if constexpr (requires { Format::kVectors; }) return Format::kVectors;
  return 1;
}

template <class Format>
static inline typename Format::Block unpack_vector(const std::byte* weights, uint32_t b,
                                                   uint32_t v) {
  if constexpr (vectors_of<Format>() > 1) return Format::unpack_of_block(weights, b, v);
  return Format::unpack(weights, b + v);
}

// R input rows times C weight rows; out(r, sums) receives the C results of a row. Unless `next` is
// null, as many bytes from it on are prefetched as are read.
template <class Isa, class Format, uint32_t R, uint32_t C, class Out>
static inline void multiply_tile(const typename Format::Input::Row* inputs,
                                 const std::byte* const (&weights)[C], uint32_t k,
                                 const std::byte* next, const Out& out) {
  using Input = typename Format::Input;
  typename Isa::Vector sums[R][C];  // the pragma keeps them in registers
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (uint32_t c = 0; c < C; ++c) sums[r][c] = Isa::zero();

  const uint32_t n_blocks = k / Input::kBlock;
  constexpr uint32_t kVectors = vectors_of<Format>();  // rows of such formats are whole blocks
  const uint64_t block_bytes = C * Format::row_bytes(kVectors * Input::kBlock);
  for (uint32_t b = 0; b < n_blocks; b += kVectors) {
    if (next != nullptr)
      for (uint64_t byte = 0; byte < block_bytes; byte += kCacheLine)
        __builtin_prefetch(next + b / kVectors * block_bytes + byte, 0, kIntoL2);
#pragma GCC unroll 8
    for (uint32_t v = 0; v < kVectors; ++v) {
      typename Format::Block blocks[C];
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c) blocks[c] = unpack_vector<Format>(weights[c], b, v);
#pragma GCC unroll 8
      for (uint32_t r = 0; r < R; ++r) {
        const auto input = Input::block(inputs[r], b + v);
#pragma GCC unroll 8
        for (uint32_t c = 0; c < C; ++c)
          sums[r][c] = Format::accumulate(sums[r][c], blocks[c], input);
      }
    }
  }
  if (const uint32_t rest = k % Input::kBlock; rest != 0) {
#pragma GCC unroll 8
    for (uint32_t c = 0; c < C; ++c) {
      const auto block = Format::unpack_tail(weights[c], n_blocks, rest);
#pragma GCC unroll 8
      for (uint32_t r = 0; r < R; ++r)
        sums[r][c] = Format::accumulate(sums[r][c], block, Input::tail(inputs[r], n_blocks, rest));
    }
  }
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; ++r) {
    float results[C < 3 ? C : 4];
    if constexpr (C < 3) {
      for (uint32_t c = 0; c < C; ++c) results[c] = Isa::sum_lanes(sums[r][c]);
    } else {
      static_assert(C <= 4);
      const typename Isa::Vector four[4] = {sums[r][0], sums[r][1], sums[r][2], sums[r][C - 1]};
      Isa::store_sums(results, four);
    }
    out(r, results);
  }
}

// `n_inputs` rows times weight rows [begin, end) of a weight whose rows lie `row_bytes` apart.
// Column tiles in the outer loop, input rows in the inner one: a tile's weights stay in L1 for
// every row. For weight row j, the row at next + j * row_bytes is prefetched. out(r, j, sums, n)
// receives results of input row r, n of weight rows from j on.
template <class Isa, class Format, uint32_t C, class Out>
static inline uint32_t multiply_columns(const typename Format::Input::Row* inputs,
                                        uint32_t n_inputs, const std::byte* weights,
                                        uint64_t row_bytes, uint32_t begin, uint32_t end,
                                        uint32_t k, const std::byte* next, const Out& out) {
  uint32_t j = begin;
  for (; j + C <= end; j += C) {
    const std::byte* rows[C];
    for (uint32_t c = 0; c < C; ++c) rows[c] = weights + row_bytes * (j + c);
    uint32_t first = 0;
    const auto prefetched = [&] {
      return first == 0 && next != nullptr ? next + row_bytes * j : nullptr;
    };
    const auto shifted = [&](uint32_t r, const float* sums) { out(first + r, j, sums, C); };
    for (; first + Isa::kTileRows <= n_inputs; first += Isa::kTileRows)
      multiply_tile<Isa, Format, Isa::kTileRows>(inputs + first, rows, k, prefetched(), shifted);
    if constexpr (Isa::kTileRows > 2)
      for (; first + 2 <= n_inputs; first += 2)
        multiply_tile<Isa, Format, 2>(inputs + first, rows, k, prefetched(), shifted);
    for (; first < n_inputs; ++first)
      multiply_tile<Isa, Format, 1>(inputs + first, rows, k, prefetched(), shifted);
  }
  return j;
}

template <class Isa, class Format, class Out>
static inline void multiply_panel(const typename Format::Input::Row* inputs, uint32_t n_inputs,
                                  const std::byte* weights, uint64_t row_bytes, uint32_t begin,
                                  uint32_t end, uint32_t k, const std::byte* next, const Out& out) {
  if (n_inputs == 1)
    begin = multiply_columns<Isa, Format, Isa::kSingleRowColumns>(inputs, 1, weights, row_bytes,
                                                                  begin, end, k, next, out);
  else
    begin = multiply_columns<Isa, Format, Isa::kFloatTileColumns>(
        inputs, n_inputs, weights, row_bytes, begin, end, k, next, out);
  multiply_columns<Isa, Format, 1>(inputs, n_inputs, weights, row_bytes, begin, end, k, next, out);
}

}  // namespace akunu::cpu
