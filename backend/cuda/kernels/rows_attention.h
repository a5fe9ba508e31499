// attention of a row that generates on tensor cores (mma.m16n8k16), over a cache of halves: a block of four warps for a kv head
// and up to eight of its query heads.
//
// 1. Floor: the keys and values that the row sees, read once. Which 64 positions are a unit, and which units a split, says
//    metal/kernels/attention_split.h. A block takes one split of a row or several: of few rows each split has a block of its own, of
//    many rows a row has one block.
// 2. Keys and values are halves, as they lie. A query, and a weight of the softmax, is the sum of two halves (22 bits), after
//    a power of two that brings a query's largest number to 2^14. Of up to four query heads both halves are the eight columns
//    of one product; of more the second halves are a product of their own.
// 3. Scores: a warp has 16 of the unit's positions. Values: a warp has every fourth 16 dimensions, for all positions.
// 4. The keys of the next unit are copied while weights are computed and values multiplied, its values while scores are.
// 5. What splits found is joined one after the other, in order of their units: by the block, where it has all of them,
//    otherwise by the block that comes last. So how many blocks there are changes no bit.
// 6. A position that the row does not see is zeros and weighs 0.
//
// Rows of keys and values lie 16 bytes past a multiple of 32 apart, so that the eight rows of a matrix are in different banks.

constexpr uint kRowThreads = 128, kRowWarps = 4;
constexpr uint kUnitPositions = 64, kRowSplits = 32;
constexpr uint kWeightStride = kUnitPositions + 8;  // halves
constexpr float kRowWeightScale = 16384.0f;         // of the softmax's weights
constexpr uint kStateBytes = 256;
constexpr float kSmallestHalf = 0x1p-24f;

// What the softmax of a query head has come to in a split.
struct RowSoftmax {
  float largest, total, shrink;
};

// A block's shared memory; kernel_table.cpp knows its size.
template <uint kHeads>
struct RowMemory {
  uint stride;          // halves
  uint score_stride;    // floats
  ushort* queries;      // [2][kHeads][stride]: first halves, second halves
  ushort* weights;      // [2][kHeads][kWeightStride], likewise
  float* scores;        // [kHeads][score_stride]; before that, queries as they are turned
  RowSoftmax* running;  // [kHeads]
  float* unscale;       // [kHeads]: what undoes a query's power of two
  ushort* keys;         // [kUnitPositions][stride]
  ushort* values;       // [kUnitPositions][stride]
  ushort* own_key;      // [head_dim]: of the row itself, for rope_attention
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
  uint place;  // where blocks of the row and the heads meet
  AKUNU_DEVICE uint first_unit() const { return begin / kUnitPositions; }
  AKUNU_DEVICE uint n_units() const {
    return end > begin ? (end - 1) / kUnitPositions - first_unit() + 1 : 0;
  }
};

// Which of a row's splits a block takes: `first` and every `step`th behind it, counted from the row's first unit.
struct SplitsOfBlock {
  uint first, step;
};

// Copies of a unit's keys, or values, begin. Rows of the span itself, from position `first_own` on, are left out.
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

// Both copies of the block's first unit begin. `cache`: keys(position) and values(position), of positions that follow one
// another within a unit.
template <uint kHeads, class Cache>
AKUNU_DEVICE void begin_row(const RowMemory<kHeads>& m, const AttendedRow& row, const Cache& cache,
                            uint first_own, SplitsOfBlock splits, uint thread_index) {
  const uint first = (row.first_unit() + splits.first) * kUnitPositions;
  copy_unit(m.keys, m.stride, cache.keys(first), row.head_dim, first, row.begin, row.end, first_own,
            thread_index);
  copy_unit(m.values, m.stride, cache.values(first), row.head_dim, first, row.begin, row.end,
            first_own, thread_index);
}

// Two numbers as halves in one word, and what that leaves of them.
AKUNU_DEVICE uint take_two_halves(float& first, float& second) {
  const uint both = pack_halves(first, second);
  first = first - low_half(both);
  second = second - high_half(both);
  return both;
}

// A query head of float32 numbers, by a warp. Heads that are not there (`from` null) are zeros.
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

// Scores of a warp's 16 positions go to shared memory.
template <uint kHeads>
AKUNU_DEVICE void compute_scores(const RowMemory<kHeads>& m, uint head_dim, uint warp, uint lane) {
  const uint place = lane / 4, pair = lane % 4 * 2;
  float sums[2][4] = {};  // of every second 16 dimensions
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
    if (kHeads == 4) score = score + simd_shuffle_xor(score, 2);  // both halves of the query
    const uint head = pair + e % 2;
    if (head < kHeads) m.scores[head * m.score_stride + 16 * warp + place + e / 2 * 8] = score;
  }
}

// The weights of a unit's positions, a warp for each query head.
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
      // The cap bends what the softmax gets, so it belongs here, before the maximum.
      if (row.soft_cap > 0.0f) score[j] = row.soft_cap * tanh_of(score[j] / row.soft_cap);
      if (is_seen[j]) top = max(top, score[j]);
    }
    top = simd_max(top);
#pragma unroll
    for (uint j = 0; j < 2; ++j) score[j] = is_seen[j] ? exp_of(score[j] - top) : 0.0f;
    const float weights = simd_sum(score[0] + score[1]);
    const float shrink = top == before.largest ? 1.0f : exp_of(before.largest - top);
    // The first half is rounded down, and the second one is not 0: then both products with an infinite value are infinite.
    const float x = score[0] * kRowWeightScale, y = score[1] * kRowWeightScale;
    const uint halves = pack_halves_down(x, y);
    const float rest_x = x - low_half(halves), rest_y = y - high_half(halves);
    uint* const to = reinterpret_cast<uint*>(m.weights + head * kWeightStride) + lane;
    to[0] = halves;
    to[kHeads * kWeightStride / 2] =
        pack_halves(rest_x == 0.0f && x > 0.0f ? kSmallestHalf : rest_x,
                    rest_y == 0.0f && y > 0.0f ? kSmallestHalf : rest_y);
    simdgroup_barrier(mem_flags::mem_none);  // all lanes have read it
    if (lane == 0) m.running[head] = RowSoftmax{top, fma(before.total, shrink, weights), shrink};
  }
}

// sums += weights * values, of the warp's tiles of 16 dimensions: rows of a sum are dimensions, columns query heads.
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

// How what was found so far and what another split has found come together: factors of both.
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

// What all splits of the row have found, as one: the arithmetic of Joined, a lane for each split, with all loads that do not depend
// on one another under way at once. `factors` is shared memory: [n_queries][2 * kRowSplits].
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

// Behind begin_row, and a barrier behind split_query of all heads. `own`: `first`, the position from which on keys and values are
// not in the cache, and place(position, key, value, lane), by which a warp puts them into shared memory. A head has at most kDims
// dimensions.
template <uint kDims, uint kHeads, class Cache, class Own>
AKUNU_DEVICE void attend_row(const RowMemory<kHeads>& m, const AttendedRow& row, const Cache& cache,
                             const Own& own, SplitsOfBlock splits, uint thread_index) {
  constexpr uint kTiles = kDims / 16 / kRowWarps;
  const uint lane = thread_index % 32, warp = thread_index / 32, head_dim = row.head_dim;
  const uint pair = lane % 4 * 2;
  const uint n_units = row.n_units(), n_splits = min(n_units, kRowSplits);
  const bool has_all = splits.step == 1 || n_splits == 1;
  float sums[kTiles][4], all[kTiles][4] = {};
  Joined joined[2];  // of the heads of its columns
  joined[0] = joined[1] = Joined{0.0f, 0.0f, 0.0f, 0.0f};
  // Weights of heads that are not there.
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
    // The place of the keys is free; a group of copies for each unit, if only an empty one.
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
          if (kHeads == 4) sum = sum + simd_shuffle_xor(sum, 2);  // both halves of the weights
          all[j][e] = fma(sum, joined[e % 2].add, all[j][e] * joined[e % 2].keep);
          const uint head = pair + e % 2;
          const uint d = 16 * (warp + kRowWarps * j) + lane / 4 + e / 2 * 8;
          if (has_all || head >= row.n_queries || d >= head_dim) continue;
          const uint place = (row.first_unit() + split) % kRowSplits;
          row.workspace[(ulong(head) * kRowSplits + place) * (head_dim + 2) + d] = sum;
        }
    }
    // Everyone is through with the values, and with the weights.
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

// A row that sees nothing.
AKUNU_DEVICE void write_zeros(const AttendedRow& row, uint thread_index) {
  for (uint i = thread_index; i < row.n_queries * row.head_dim; i += kRowThreads) row.out[i] = 0.0f;
}
