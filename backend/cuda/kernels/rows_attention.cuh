// Decode attention on tensor cores (mma.m16n8k16) over an F16 cache: a block of four warps computes one row, for one kv head and
// up to eight of its query heads.
//
// 1. Lower bound of the time: the keys and values that the row sees are read once. They are divided into units of 64 positions, and
//    units into splits (metal/kernels/attention_split.h). A block computes one split of a row or several: with few rows each split has
//    its own block, with many rows one block computes a whole row.
// 2. Keys and values are F16 and are multiplied without conversion. A query is scaled by a power of two that brings its largest
//    number to 2^14. Each query number, and each softmax weight, is then the sum of two F16 numbers (22 bits). With up to four query
//    heads the two parts of all of them are the eight columns of one product; with more, the second parts are a second product.
// 3. Scores: each warp computes 16 positions of the unit. Values: each warp computes every fourth group of 16 dimensions, over all
//    positions.
// 4. Copies overlap with computing: the next unit's keys are copied while softmax weights are computed and values multiplied, and its
//    values while its scores are computed.
// 5. The results of splits are merged one after the other, in the order of their units: by the block, if it computed all of them,
//    otherwise by the last block to finish. So the number of blocks does not change a bit of the result.
// 6. A position that the row does not see has zeros in shared memory, and weight 0.
//
// In shared memory the stride of a key or value row is 16 bytes more than a multiple of 32, so that the eight rows that ldmatrix
// loads for one matrix are in different banks.
#pragma once

#include "cuda/kernels/warpgroup.cuh"
#include "metal/kernels/functions.cuh"

namespace gpu {

constexpr uint kRowThreads = 128, kRowWarps = 4;
constexpr uint kUnitPositions = 64, kRowSplits = 32;
constexpr uint kWeightStride = kUnitPositions + 8;  // halves
constexpr float kRowWeightScale = 16384.0f;         // of the softmax's weights
constexpr uint kStateBytes = 256;
constexpr float kSmallestHalf = 0x1p-24f;

// The running softmax of a query head in a split: maximum, sum of weights, and the factor for what was summed before.
struct RowSoftmax {
  float largest, total, shrink;
};

// A block's shared memory; row_attention_bytes in kernel_table.cpp computes its size.
template <uint kHeads>
struct RowMemory {
  uint stride;          // halves
  uint score_stride;    // floats
  ushort* queries;      // [2][kHeads][stride]: first parts, second parts
  ushort* weights;      // [2][kHeads][kWeightStride], likewise
  float* scores;        // [kHeads][score_stride]; before that, queries while RoPE is applied
  RowSoftmax* running;  // [kHeads]
  float* unscale;       // [kHeads]: the inverse of a query's power of two
  ushort* keys;         // [kUnitPositions][stride]
  ushort* values;       // [kUnitPositions][stride]
  ushort* own_key;      // [head_dim]: the row's own, for rope_attention
  ushort* own_value;    // [head_dim]
};
template <uint kHeads>
AKUNU_DEVICE RowMemory<kHeads> row_memory(uchar* at, uint head_dim) {
  RowMemory<kHeads> m;
  m.stride = head_dim + 8;
  m.score_stride = max(head_dim, kUnitPositions);
  m.queries = reinterpret_cast<ushort*>(at);
  m.weights = m.queries + 2 * kHeads * m.stride;
  m.scores = reinterpret_cast<float*>(m.weights + 2 * kHeads * kWeightStride);
  m.running = reinterpret_cast<RowSoftmax*>(m.scores + kHeads * m.score_stride);
  m.unscale = reinterpret_cast<float*>(m.running + 8);
  m.keys = reinterpret_cast<ushort*>(reinterpret_cast<uchar*>(m.running) + kStateBytes);
  m.values = m.keys + kUnitPositions * m.stride;
  m.own_key = m.values + kUnitPositions * m.stride;
  m.own_value = m.own_key + head_dim;
  return m;
}

// A row and the query heads of a kv head.
struct AttendedRow {
  uint begin, end;  // positions that it sees
  uint n_queries, head_dim;
  float scale, soft_cap;
  float* out;  // [n_queries][head_dim]
  float*
      workspace;  // [n_queries][kRowSplits][head_dim + 2]: sums of values, the maximum, the sum of weights
  uint
      place;  // index of the counter by which the blocks of this row and kv head find out which of them is last
  AKUNU_DEVICE uint first_unit() const { return begin / kUnitPositions; }
  AKUNU_DEVICE uint n_units() const {
    return end > begin ? (end - 1) / kUnitPositions - first_unit() + 1 : 0;
  }
};

// The splits of a row that a block computes: `first`, `first + step`, ..., counted from the row's first unit.
struct SplitsOfBlock {
  uint first, step;
};

// Starts to copy a unit's keys, or values. Positions from `first_own` on are not copied: they are not in the cache yet.
AKUNU_DEVICE void copy_unit(ushort* to, uint stride, const ushort* from, uint head_dim, uint first,
                            uint begin, uint end, uint first_own, uint thread_index) {
  const uint n_pieces = head_dim / 8;
  uint i = thread_index / n_pieces, piece = thread_index % n_pieces;
  const uint rows_ahead = kRowThreads / n_pieces, pieces_ahead = kRowThreads % n_pieces;
  while (i < kUnitPositions) {
    const uint position = first + i;
    const bool is_seen = position >= begin && position < end;
    if (!is_seen || position < first_own)
      copy_16_bytes(to + i * stride + piece * 8, from + (is_seen ? i * head_dim : 0) + piece * 8,
                    is_seen);
    i += rows_ahead;
    piece += pieces_ahead;
    if (piece >= n_pieces) {
      piece -= n_pieces;
      ++i;
    }
  }
  end_copies();
}

// Starts to copy the keys and values of the block's first unit. `cache`: keys(position) and values(position) point to the first
// number of a position; within a unit positions are contiguous.
template <uint kHeads, class Cache>
AKUNU_DEVICE void begin_row(const RowMemory<kHeads>& m, const AttendedRow& row, const Cache& cache,
                            uint first_own, SplitsOfBlock splits, uint thread_index) {
  const uint first = (row.first_unit() + splits.first) * kUnitPositions;
  copy_unit(m.keys, m.stride, cache.keys(first), row.head_dim, first, row.begin, row.end, first_own,
            thread_index);
  copy_unit(m.values, m.stride, cache.values(first), row.head_dim, first, row.begin, row.end,
            first_own, thread_index);
}

// Packs two numbers as F16 into one word, and subtracts from them what was packed.
AKUNU_DEVICE uint take_two_halves(float& first, float& second) {
  const uint both = pack_halves(first, second);
  first = first - low_half(both);
  second = second - high_half(both);
  return both;
}

// A warp splits a float32 query head into two F16 parts. A head that does not exist (`from` null) becomes zeros.
template <uint kHeads>
AKUNU_DEVICE void split_query(const RowMemory<kHeads>& m, const float* from, uint head,
                              uint head_dim, uint lane) {
  float largest = 0.0f;
  if (from != nullptr)
    for (uint d = lane; d < head_dim; d += 32) largest = max(largest, fabs(from[d]));
  const uint stored = max(as_type<uint>(simd_max(largest)) >> 23, 14u);
  const bool is_usual = stored < 255;
  const float scale = is_usual ? as_type<float>((267 - stored) << 23) : 1.0f;
  if (lane == 0) m.unscale[head] = is_usual ? as_type<float>((stored - 13) << 23) : 1.0f;
  for (uint d = 2 * lane; d < head_dim; d += 64) {
    float first = from != nullptr ? from[d] * scale : 0.0f;
    float second = from != nullptr ? from[d + 1] * scale : 0.0f;
    uint* const to = reinterpret_cast<uint*>(m.queries + head * m.stride + d);
    to[0] = take_two_halves(first, second);
    to[kHeads * m.stride / 2] = take_two_halves(first, second);
  }
}

// A warp computes the scores of its 16 positions and writes them to shared memory.
template <uint kHeads>
AKUNU_DEVICE void compute_scores(const RowMemory<kHeads>& m, uint head_dim, uint warp, uint lane) {
  const uint place = lane / 4, pair = lane % 4 * 2;
  float sums[2][4] = {};  // [0]: of dimensions 0 to 15, 32 to 47, ...; [1]: of the others
#pragma unroll 4
  for (uint first = 0; first < head_dim; first += 32)
#pragma unroll
    for (uint odd = 0; odd < 2; ++odd) {
      const uint d = first + 16 * odd;
      if (d >= head_dim) continue;
      uint a[4];
      load_matrices(a, m.keys + (16 * warp + lane % 16) * m.stride + d + lane / 16 * 8);
#pragma unroll
      for (uint part = kHeads / 4; part-- > 0;) {
        const uint* const b =
            reinterpret_cast<const uint*>(m.queries + (8 * part + place) * m.stride + d + pair);
        multiply_float16(sums[odd], a, b[0], b[4]);
      }
    }
#pragma unroll
  for (uint e = 0; e < 4; ++e) {
    float score = sums[0][e] + sums[1][e];
    if (kHeads == 4)
      score = score + simd_shuffle_xor(score, 2);  // the products of both parts of the query
    const uint head = pair + e % 2;
    if (head < kHeads) m.scores[head * m.score_stride + 16 * warp + place + e / 2 * 8] = score;
  }
}

// Computes the softmax weights of a unit's 64 positions. Each query head is computed by one warp.
template <uint kHeads>
AKUNU_DEVICE void compute_weights(const RowMemory<kHeads>& m, const AttendedRow& row, uint first,
                                  uint warp, uint lane) {
  for (uint head = warp; head < row.n_queries; head += kRowWarps) {
    const RowSoftmax before = m.running[head];
    const float undo = m.unscale[head];
    float score[2];
    bool is_seen[2];
    float top = before.largest;
#pragma unroll
    for (uint j = 0; j < 2; ++j) {
      const uint i = 2 * lane + j, position = first + i;
      is_seen[j] = position >= row.begin && position < row.end;
      score[j] = m.scores[head * m.score_stride + i] * undo * row.scale;
      // The soft cap applies to the scores that the softmax gets, so it comes before the maximum.
      if (row.soft_cap > 0.0f) score[j] = row.soft_cap * tanh_of(score[j] / row.soft_cap);
      if (is_seen[j]) top = max(top, score[j]);
    }
    top = simd_max(top);
#pragma unroll
    for (uint j = 0; j < 2; ++j) score[j] = is_seen[j] ? exp_of(score[j] - top) : 0.0f;
    const float weights = simd_sum(score[0] + score[1]);
    const float shrink = top == before.largest ? 1.0f : exp_of(before.largest - top);
    // The first part is rounded down and the second part is never 0, so that both products with an infinite value are infinite,
    // with the same sign.
    const float x = score[0] * kRowWeightScale, y = score[1] * kRowWeightScale;
    const uint halves = pack_halves_down(x, y);
    const float rest_x = x - low_half(halves), rest_y = y - high_half(halves);
    uint* const to = reinterpret_cast<uint*>(m.weights + head * kWeightStride) + lane;
    to[0] = halves;
    to[kHeads * kWeightStride / 2] =
        pack_halves(rest_x == 0.0f && x > 0.0f ? kSmallestHalf : rest_x,
                    rest_y == 0.0f && y > 0.0f ? kSmallestHalf : rest_y);
    simdgroup_barrier(mem_flags::mem_none);  // all lanes have read m.running[head]
    if (lane == 0) m.running[head] = RowSoftmax{top, fma(before.total, shrink, weights), shrink};
  }
}

// sums += weights * values, for the warp's tiles of 16 dimensions. Rows of a sum are dimensions, columns are query heads.
template <uint kHeads, uint kTiles>
AKUNU_DEVICE void add_unit_values(const RowMemory<kHeads>& m, uint head_dim,
                                  float (&sums)[kTiles][4], uint warp, uint lane) {
  const uint place = lane / 4, pair = lane % 4 * 2;
  float shrink[2];
#pragma unroll
  for (uint e = 0; e < 2; ++e) shrink[e] = m.running[(pair + e) % kHeads].shrink;
#pragma unroll
  for (uint j = 0; j < kTiles; ++j)
#pragma unroll
    for (uint e = 0; e < 4; ++e) sums[j][e] = sums[j][e] * shrink[e % 2];
#pragma unroll
  for (uint step = 0; step < kUnitPositions / 16; ++step) {
    uint b[kHeads / 4][2];
#pragma unroll
    for (uint part = 0; part < kHeads / 4; ++part) {
      const uint* const from = reinterpret_cast<const uint*>(
          m.weights + (8 * part + place) * kWeightStride + 16 * step + pair);
      b[part][0] = from[0];
      b[part][1] = from[4];
    }
#pragma unroll
    for (uint j = 0; j < kTiles; ++j) {
      const uint d = 16 * (warp + kRowWarps * j);
      if (d >= head_dim) continue;
      uint a[4];
      load_matrices_transposed(
          a, m.values + (16 * step + lane / 16 * 8 + lane % 8) * m.stride + d + lane / 8 % 2 * 8);
#pragma unroll
      for (uint part = kHeads / 4; part-- > 0;)
        multiply_float16(sums[j], a, b[part][0], b[part][1]);
    }
  }
}

// Merges the softmax of another split into that of the splits before: factors for the sums of both.
struct Joined {
  float largest, total, keep, add;
  AKUNU_DEVICE void join(bool is_first, float other, float found) {
    const float top = is_first ? other : max(largest, other);
    keep = is_first ? 0.0f : top == largest ? 1.0f : exp_of(largest - top);
    add = top == other ? 1.0f : exp_of(other - top);
    largest = top;
    total = fma(found, add, total * keep);
  }
};

// Merges the results of all splits of the row from the workspace, with the arithmetic of Joined: lane i has split i, so that loads
// that do not depend on one another overlap. `factors` is shared memory: [n_queries][2 * kRowSplits].
AKUNU_DEVICE void join_splits(const AttendedRow& row, uint n_splits, float* factors, uint stride,
                              float* totals, uint thread_index) {
  constexpr uint kTogether = 8;
  const uint lane = thread_index % 32, head_dim = row.head_dim;
  const uint row_floats = head_dim + 2;
  const auto of_split = [&](uint head, uint i) {
    return row.workspace +
           (ulong(head) * kRowSplits + (row.first_unit() + i) % kRowSplits) * row_floats;
  };
  for (uint head = thread_index / 32; head < row.n_queries; head += kRowWarps) {
    const float* const own = of_split(head, lane);
    const float largest = lane < n_splits ? own[head_dim] : 0.0f;
    const float found = lane < n_splits ? own[head_dim + 1] : 0.0f;
    float top = largest;  // of the splits so far
    for (uint step = 1; step < 32; step *= 2) {
      const float before = simd_shuffle(top, lane >= step ? lane - step : lane);
      top = max(before, top);
    }
    const float before = simd_shuffle(top, lane >= 1 ? lane - 1 : 0);
    const float keep = lane == 0 ? 0.0f : top == before ? 1.0f : exp_of(before - top);
    const float add = top == largest ? 1.0f : exp_of(largest - top);
    factors[head * stride + lane] = keep;
    factors[head * stride + kRowSplits + lane] = add;
    float total = 0.0f;
    for (uint i = 0; i < n_splits; ++i)
      total = fma(simd_shuffle(found, i), simd_shuffle(add, i), total * simd_shuffle(keep, i));
    if (lane == 0) totals[head] = total;
  }
  threadgroup_barrier(mem_flags::mem_none);
  for (uint task = thread_index; task < row.n_queries * head_dim; task += kRowThreads) {
    const uint head = task / head_dim, d = task % head_dim;
    float sum = 0.0f;
    for (uint first = 0; first < n_splits; first += kTogether) {
      float part[kTogether];
#pragma unroll
      for (uint i = 0; i < kTogether; ++i)
        part[i] = first + i < n_splits ? of_split(head, first + i)[d] : 0.0f;
#pragma unroll
      for (uint i = 0; i < kTogether; ++i)
        if (first + i < n_splits)
          sum = fma(part[i], factors[head * stride + kRowSplits + first + i],
                    sum * factors[head * stride + first + i]);
    }
    row.out[task] = sum * (1.0f / kRowWeightScale) / totals[head];
  }
}

// Computes a row. Called after begin_row, and after a barrier that follows split_query of all heads. `own.first`: the first position
// whose keys and values are not in the cache; own.place(position, key, value, lane): a warp writes those of a position to shared
// memory. kDims: the most dimensions of a head.
template <uint kDims, uint kHeads, class Cache, class Own>
AKUNU_DEVICE void attend_row(const RowMemory<kHeads>& m, const AttendedRow& row, const Cache& cache,
                             const Own& own, SplitsOfBlock splits, uint thread_index) {
  constexpr uint kTiles = kDims / 16 / kRowWarps;
  const uint lane = thread_index % 32, warp = thread_index / 32, head_dim = row.head_dim;
  const uint pair = lane % 4 * 2;
  const uint n_units = row.n_units(), n_splits = min(n_units, kRowSplits);
  const bool has_all = splits.step == 1 || n_splits == 1;
  float sums[kTiles][4], all[kTiles][4] = {};
  Joined joined[2];  // of the two query heads whose columns the lane has
  joined[0] = joined[1] = Joined{0.0f, 0.0f, 0.0f, 0.0f};
  // Heads that do not exist have weight 0.
  for (uint i = thread_index; i < 2 * (kHeads - row.n_queries) * kWeightStride; i += kRowThreads) {
    const uint n = (kHeads - row.n_queries) * kWeightStride;
    m.weights[(i / n * kHeads + row.n_queries) * kWeightStride + i % n] = 0;
  }

  uint split = splits.first, unit = split;
  while (true) {
    const bool ends = unit + kRowSplits >= n_units;
    const uint next_split = ends ? split + splits.step : split;
    const uint next = ends ? next_split : unit + kRowSplits;
    const bool has_next = next_split < n_splits;
    const uint first = (row.first_unit() + unit) * kUnitPositions;
    const uint next_first = (row.first_unit() + next) * kUnitPositions;
    if (unit == split) {
#pragma unroll
      for (uint j = 0; j < kTiles; ++j)
#pragma unroll
        for (uint e = 0; e < 4; ++e) sums[j][e] = 0.0f;
      if (thread_index < kHeads)
        m.running[thread_index] = RowSoftmax{as_type<float>(0xff800000u), 0.0f, 1.0f};
    }
    const uint own_end = min(first + kUnitPositions, row.end);
    const uint own_begin = min(max(max(own.first, first), row.begin), own_end);
    for (uint p = own_begin + warp; p < own_end; p += kRowWarps)
      own.place(p, m.keys + (p - first) * m.stride, m.values + (p - first) * m.stride, lane);
    wait_for_copies<1>();  // keys
    threadgroup_barrier(mem_flags::mem_none);
    compute_scores(m, head_dim, warp, lane);
    threadgroup_barrier(mem_flags::mem_none);
    // All warps have read this unit's keys, so the next unit's may overwrite them. wait_for_copies counts groups of copies, so an
    // empty group is committed where there is no next unit.
    if (has_next)
      copy_unit(m.keys, m.stride, cache.keys(next_first), head_dim, next_first, row.begin, row.end,
                own.first, thread_index);
    else
      end_copies();
    compute_weights(m, row, first, warp, lane);
    wait_for_copies<1>();  // values
    threadgroup_barrier(mem_flags::mem_none);
    add_unit_values(m, head_dim, sums, warp, lane);

    if (ends) {
#pragma unroll
      for (uint e = 0; e < 2; ++e) {
        const RowSoftmax found = m.running[(pair + e) % kHeads];
        joined[e].join(split == 0, found.largest, found.total);
      }
      if (!has_all && thread_index < row.n_queries) {
        const uint place = (row.first_unit() + split) % kRowSplits;
        float* const to =
            row.workspace + (ulong(thread_index) * kRowSplits + place) * (head_dim + 2);
        to[head_dim] = m.running[thread_index].largest;
        to[head_dim + 1] = m.running[thread_index].total;
      }
#pragma unroll
      for (uint j = 0; j < kTiles; ++j)
#pragma unroll
        for (uint e = 0; e < 4; ++e) {
          float sum = sums[j][e];
          if (kHeads == 4)
            sum = sum + simd_shuffle_xor(sum, 2);  // the products of both parts of the weights
          all[j][e] = fma(sum, joined[e % 2].add, all[j][e] * joined[e % 2].keep);
          const uint head = pair + e % 2;
          const uint d = 16 * (warp + kRowWarps * j) + lane / 4 + e / 2 * 8;
          if (has_all || head >= row.n_queries || d >= head_dim) continue;
          const uint place = (row.first_unit() + split) % kRowSplits;
          row.workspace[(ulong(head) * kRowSplits + place) * (head_dim + 2) + d] = sum;
        }
    }
    // All warps have read this unit's values and weights.
    threadgroup_barrier(mem_flags::mem_none);
    if (!has_next) break;
    copy_unit(m.values, m.stride, cache.values(next_first), head_dim, next_first, row.begin,
              row.end, own.first, thread_index);
    split = next_split;
    unit = next;
  }

  if (!has_all) {
    if (last_to_arrive(row.place, min(splits.step, n_splits)))
      join_splits(row, n_splits, m.scores, m.score_stride, m.unscale, thread_index);
    return;
  }
#pragma unroll
  for (uint j = 0; j < kTiles; ++j)
#pragma unroll
    for (uint e = 0; e < 4; ++e) {
      const uint head = pair + e % 2;
      const uint d = 16 * (warp + kRowWarps * j) + lane / 4 + e / 2 * 8;
      if (head < row.n_queries && d < head_dim)
        row.out[head * head_dim + d] = all[j][e] * (1.0f / kRowWeightScale) / joined[e % 2].total;
    }
}

// A row that sees no position has zeros as its result.
AKUNU_DEVICE void write_zeros(const AttendedRow& row, uint thread_index) {
  for (uint i = thread_index; i < row.n_queries * row.head_dim; i += kRowThreads) row.out[i] = 0.0f;
}

}  // namespace gpu
