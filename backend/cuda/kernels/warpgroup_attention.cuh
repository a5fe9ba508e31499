// attention of prompts on wgmma (warpgroup.cuh), over a cache of halves, for NVIDIA's Hopper GPUs
// (sm_90a): tiles of query rows of one head against blocks of positions, with a running softmax (FlashAttention-3,
// arXiv 2407.08608).
//
// 1. Floor. For 64 rows and 128 positions tensor cores take 8 * head_dim cycles, the powers of two of the softmax 512,
//    and the rest of it about as many. So one warpgroup's softmax runs beside the other's products: the two take turns
//    in issuing them (named barriers). And a warpgroup has the products of the next block's scores and of this block's
//    values under way together.
// 2. A query row is rounded to f16 once, after multiplying by the power of two that brings its largest magnitude into
//    [2^14, 2^15): off by 2^-11 of a number, or 2^-39 of the row's largest. The softmax's weights, up to 2^14, are
//    rounded to f16 likewise. Keys and values are f16 in the cache. Products are exact, sums float32.
// 3. Two warps copy keys, and two values (cp.async of 16 bytes): positions lie in order in a page, and wgmma reads them
//    swizzled. They put zeros where a position is outside what the tile sees.
// 4. Blocks begin at multiples of kTilePositions, whichever rows a tile has, and a position that a row does not see
//    weighs exactly 0: the bits of a row that sees finite values alone depend on its own range alone.
// 5. A value that only some of the rows see must not spoil the others where it is not finite (0 * inf is NaN): the
//    warps that copy take it out of the block, and those rows add it by themselves.
#pragma once

#include "cuda/kernels/warpgroup_tile.cuh"

namespace gpu {

constexpr uint kTilePositions = 128;  // of a block; divides a page
constexpr uint kQueryRows = 64;       // of a warpgroup
constexpr uint kCopyThreads = 64;     // two warps copy keys, and two values
constexpr uint kSlabColumns = 64;     // dimensions of a row that swizzles in 128 bytes
constexpr float kWeightExponent = 14.0f;

// What rows see: [begin, end) some of them, [all_begin, all_end) all of them.
struct SeenByRows {
  uint begin = 0xffffffffu, end = 0, all_begin = 0, all_end = 0xffffffffu;
  AKUNU_DEVICE void add(const SeenByRows& more) {
    begin = min(begin, more.begin);
    end = max(end, more.end);
    all_begin = max(all_begin, more.all_begin);
    all_end = min(all_end, more.all_end);
  }
  AKUNU_DEVICE uint first_block() const { return begin / kTilePositions * kTilePositions; }
};

// The rows of a tile. `query` and `out`: of the first row and the tile's head; `row_stride` numbers to the next row.
struct AttentionTile {
  const float* query;
  float* out;
  uint row_stride, n_rows;
  float scale;
};

// Cache (of the tile's sequence and kv head) has
//   Range range(row)      positions [begin, end) that a row of the tile sees
//   const ushort* keys(position), values(position)    where those of a position lie; further ones of its page follow

// The rows of warpgroup `consumer`.
template <class Cache>
AKUNU_DEVICE SeenByRows seen_by(const Cache& cache, uint consumer, uint n_rows, uint lane) {
  SeenByRows seen;
#pragma unroll
  for (uint i = 0; i < kQueryRows / 32; ++i) {
    const uint row = consumer * kQueryRows + i * 32 + lane;
    if (row >= n_rows) continue;
    const auto own = cache.range(row);
    seen.add({own.begin, own.end, own.begin, own.end});
  }
  return {simd_min(seen.begin), simd_max(seen.end), simd_max(seen.all_begin),
          simd_min(seen.all_end)};
}

// --- Shared memory -----------------------------------------------------------------------------------

// mbarriers, then queries of each warpgroup, the rings of keys and of values: each kDims / 64 slabs of rows of 128 bytes.
template <uint kDims, uint kGroups>
struct AttentionStages {
  static constexpr uint kQueryBytes = 2 * kQueryRows * kDims;
  static constexpr uint kBlockBytes = 2 * kTilePositions * kDims;
  static constexpr uint kSlabBytes = kTilePositions * 128;
  static constexpr uint kStages = kDims > 64 ? 3 : 4;  // blocks of keys, and of values
  static constexpr uint kBytes =
      kBarrierBytes + 1024 + kGroups * kQueryBytes + 2 * kStages * kBlockBytes;
  static_assert(kBytes <= kSharedBytes, "a block has as much");

  ulong* barriers;
  uchar* first;
  AKUNU_DEVICE explicit AttentionStages(uchar* memory)
      : barriers(reinterpret_cast<ulong*>(memory)),
        first(memory + kBarrierBytes + 1024 - shared_address(memory + kBarrierBytes) % 1024) {}
  AKUNU_DEVICE uchar* queries(uint consumer) const { return first + consumer * kQueryBytes; }
  AKUNU_DEVICE uchar* keys(uint stage) const {
    return first + kGroups * kQueryBytes + stage * kBlockBytes;
  }
  AKUNU_DEVICE uchar* values(uint stage) const { return keys(kStages + stage); }
  // Of each stage: that it has been filled, and that it may be filled again.
  AKUNU_DEVICE ulong* has_keys(uint stage) const { return barriers + stage; }
  AKUNU_DEVICE ulong* has_values(uint stage) const { return barriers + 4 + stage; }
  AKUNU_DEVICE ulong* wants_keys(uint stage) const { return barriers + 8 + stage; }
  AKUNU_DEVICE ulong* wants_values(uint stage) const { return barriers + 12 + stage; }
  // Of a stage of values: 1 plus the first position of a block from which something was taken out.
  AKUNU_DEVICE uint* spoilt(uint stage) const {
    return reinterpret_cast<uint*>(barriers + 16) + stage;
  }
  AKUNU_DEVICE uint* unused() const { return spoilt(kStages); }
  AKUNU_DEVICE void begin(uint thread_index) const {
    if (thread_index == 0) {
#pragma unroll
      for (uint i = 0; i < kStages; ++i) {
        begin_barrier(has_keys(i), kCopyThreads / 32);
        begin_barrier(has_values(i), kCopyThreads / 32);
        begin_barrier(wants_keys(i), 4 * kGroups);
        begin_barrier(wants_values(i), 4 * kGroups);
        *spoilt(i) = 0;
      }
    }
    barriers_ready();
  }
};

// --- The warps that copy -----------------------------------------------------------------------------

// A thread's pieces of 16 bytes of a block: always the same ones of a slab's row, of positions eight apart, so that
// neighbouring threads copy neighbouring bytes, and the swizzle is the same for all of them.
template <uint kDims>
struct CopiedPieces {
  static constexpr uint kSlabBytes = kTilePositions * 128;
  static constexpr uint kStep = kCopyThreads / 8;  // positions
  static constexpr uint kCount = kTilePositions / kStep;
  static_assert(kStep == 8, "the swizzle is the same");
  // Of the first one: `from` counts numbers from the block's beginning, `to` bytes in shared memory.
  uint position, from, to;
  AKUNU_DEVICE explicit CopiedPieces(uint thread)
      : position(thread / 8),
        from(thread / 8 * kDims + thread % 8 * 8),
        to(thread / 8 * 128 + (thread % 8 ^ thread / 8) * 16) {}
  AKUNU_DEVICE void copy(uchar* block, const ushort* pool, uint first,
                         const SeenByRows& seen) const {
    if (first >= seen.begin && first + kTilePositions <= seen.end)
      copy_pieces(block, pool, [](uint) { return true; });
    else
      copy_pieces(block, pool, [&](uint i) {
        const uint at = first + position + i * kStep;
        return at >= seen.begin && at < seen.end;
      });
    end_copies();
  }
  template <class IsThere>
  AKUNU_DEVICE void copy_pieces(uchar* block, const ushort* pool, const IsThere& is_there) const {
#pragma unroll
    for (uint i = 0; i < kCount; ++i)
#pragma unroll
      for (uint slab = 0; slab < kDims / kSlabColumns; ++slab)
        copy_16_bytes(block + to + slab * kSlabBytes + i * kStep * 128,
                      pool + from + i * kStep * kDims + slab * kSlabColumns, is_there(i));
  }
  // Puts zeros in the place of what is not finite. Returns whether there was any.
  AKUNU_DEVICE bool clear_not_finite(uchar* block) const {
    bool any = false;
#pragma unroll 1
    for (uint i = 0; i < kCount * (kDims / kSlabColumns); ++i) {
      uint* const piece = reinterpret_cast<uint*>(block + to + i * (kStep * 128));
#pragma unroll
      for (uint j = 0; j < 4; ++j) {
        const uint two = piece[j];
        uint kept = two;
        if ((two & 0x7c00u) == 0x7c00u) kept &= 0xffff0000u;
        if ((two & 0x7c000000u) == 0x7c000000u) kept &= 0x0000ffffu;
        if (kept == two) continue;
        piece[j] = kept;
        any = true;
      }
    }
    return any;
  }
};

// Two warps copy all blocks of keys, or of values. The next block's copies begin before they wait for a block's.
template <bool kIsValues, uint kDims, uint kGroups, class Cache>
AKUNU_DEVICE void copy_blocks(const AttentionStages<kDims, kGroups>& stages, const Cache& cache,
                              const SeenByRows& seen, uint thread) {
  const CopiedPieces<kDims> pieces(thread);
  Turn<AttentionStages<kDims, kGroups>::kStages> turn, last;
  const auto block_at = [&](uint stage) {
    return kIsValues ? stages.values(stage) : stages.keys(stage);
  };
  const auto is_there = [&](uint stage, uint first) {
    if (kIsValues && (first < seen.all_begin || first + kTilePositions > seen.all_end) &&
        pieces.clear_not_finite(block_at(stage)))
      *stages.spoilt(stage) = first + 1;
    stores_before_products();
    simdgroup_barrier(mem_flags::mem_none);
    if (thread % 32 == 0) arrive(kIsValues ? stages.has_values(stage) : stages.has_keys(stage));
  };
  const uint begin = seen.first_block();
#pragma unroll 1
  for (uint first = begin; first < seen.end; first += kTilePositions) {
    wait_for_phase(kIsValues ? stages.wants_values(turn.stage) : stages.wants_keys(turn.stage),
                   turn.parity ^ 1);
    pieces.copy(block_at(turn.stage), kIsValues ? cache.values(first) : cache.keys(first), first,
                seen);
    if (first != begin) {
      wait_for_copies<1>();
      is_there(last.stage, first - kTilePositions);
    }
    last = turn;
    turn.next();
  }
  wait_for_copies<0>();
  if (seen.begin < seen.end) is_there(last.stage, (seen.end - 1) / kTilePositions * kTilePositions);
}

// --- The warps that multiply ---------------------------------------------------------------------------

// Rounds a warp's 16 query rows; rows past the end repeat the last one. Returns the factors of a lane's two rows.
template <uint kDims>
AKUNU_DEVICE void round_queries(const AttentionTile& tile, uint first, uchar* queries, uint warp,
                                uint lane, float (&factors)[2]) {
  constexpr uint kSlabs = kDims / kSlabColumns;
  float2 x[16][kSlabs];
#pragma unroll
  for (uint r = 0; r < 16; ++r) {
    const uint row = min(first + 16 * warp + r, tile.n_rows - 1);
    const float* const from = tile.query + ulong(row) * tile.row_stride;
#pragma unroll
    for (uint slab = 0; slab < kSlabs; ++slab)
      x[r][slab] = reinterpret_cast<const float2*>(from + slab * kSlabColumns)[lane];
  }
#pragma unroll
  for (uint r = 0; r < 16; ++r) {
    float largest = 0.0f;
#pragma unroll
    for (uint slab = 0; slab < kSlabs; ++slab)
      largest = larger_of(largest, larger_of(fabs(x[r][slab].x), fabs(x[r][slab].y)));
    const float factor = factor_of(simd_max(largest));
    if (r % 8 == lane / 4) factors[r / 8] = factor;
    uchar* const to = queries + (16 * warp + r) * 128 + (lane / 4 ^ r % 8) * 16 + lane % 4 * 4;
#pragma unroll
    for (uint slab = 0; slab < kSlabs; ++slab)
      *reinterpret_cast<uint*>(to + slab * (kQueryRows * 128)) =
          pack_halves(x[r][slab].x * factor, x[r][slab].y * factor);
  }
  stores_before_products();
}

// The running softmax of a lane's two rows: the largest score so far (as wgmma sums it), what is added to exponents for
// it, and the lane's own part of the sum of weights.
struct RunningSoftmax {
  float factor[2];  // of a score: makes it an exponent of 2
  float top[2], shift[2], total[2];
};

// Makes weights of the scores. `shrink`: what the results so far are multiplied by.
AKUNU_DEVICE void weigh(RunningSoftmax& softmax, float (&scores)[64], float (&shrink)[2]) {
  const float lowest = -as_type<float>(0x7f800000u);
  float shift[2];
  bool is_far[2];
#pragma unroll
  for (uint part = 0; part < 2; ++part) {
    const float factor = softmax.factor[part], before = softmax.top[part];
    float top = before;
#pragma unroll
    for (uint i = 0; i < 32; ++i) top = larger_of(top, scores[i / 2 * 4 + 2 * part + i % 2]);
    top = larger_of(top, simd_shuffle_xor(top, 1));
    top = larger_of(top, simd_shuffle_xor(top, 2));
    // Where nothing was seen yet, all scores are the lowest, and weigh 0. The rounding of a shift is the same for all
    // weights, unless it is no small number.
    shift[part] = top == lowest ? 0.0f : fma(-top, factor, kWeightExponent);
    is_far[part] = fabs(shift[part]) > 65536.0f;
    const float fall = is_far[part] ? (before - top) * factor : shift[part] - softmax.shift[part];
    shrink[part] = before == lowest ? 0.0f : power_of_two_near(fall);
    softmax.top[part] = top;
    softmax.shift[part] = shift[part];
  }
  if (simd_any(is_far[0] || is_far[1])) {
#pragma unroll
    for (uint i = 0; i < 64; ++i)
      if (is_far[i / 2 % 2]) scores[i] = scores[i] - softmax.top[i / 2 % 2];
#pragma unroll
    for (uint part = 0; part < 2; ++part)
      if (is_far[part]) shift[part] = kWeightExponent;
  }
#pragma unroll
  for (uint part = 0; part < 2; ++part) {
    float sums[2] = {0.0f, 0.0f};
#pragma unroll
    for (uint i = 0; i < 32; ++i) {
      float& score = scores[i / 2 * 4 + 2 * part + i % 2];
      score = power_of_two_near(fma(score, softmax.factor[part], shift[part]));
      sums[i % 2] += score;
    }
    softmax.total[part] = fma(softmax.total[part], shrink[part], sums[0] + sums[1]);
  }
}

// Scores of positions outside a row's range are the lowest.
AKUNU_DEVICE void cut_scores(float (&scores)[64], uint first, const uint (&begin)[2],
                             const uint (&end)[2]) {
#pragma unroll
  for (uint i = 0; i < 64; ++i) {
    const uint position = first + i / 4 * 8 + i % 2, part = i / 2 % 2;
    if (position < begin[part] || position >= end[part]) scores[i] = -as_type<float>(0x7f800000u);
  }
}

// Adds the values that were taken out of a block to the rows that see them.
template <uint kDims>
AKUNU_DEVICE void add_not_finite(float (&results)[kDims / 2], const ushort* values, uint first,
                                 const SeenByRows& seen, const uint (&begin)[2],
                                 const uint (&end)[2], uint lane) {
#pragma unroll 1
  for (uint i = 0; i < kTilePositions; ++i) {
    const uint position = first + i;
    if (position < seen.begin || position >= seen.end) continue;
    const uint* const row = reinterpret_cast<const uint*>(values + i * kDims) + lane % 4;
#pragma unroll
    for (uint j = 0; j < kDims / 8; ++j) {
      const uint two = row[4 * j];
#pragma unroll
      for (uint e = 0; e < 2; ++e) {
        const uint bits = two >> (16 * e) & 0xffffu;
        if ((bits & 0x7c00u) != 0x7c00u) continue;
#pragma unroll
        for (uint part = 0; part < 2; ++part)
          if (position >= begin[part] && position < end[part])
            results[4 * j + 2 * part + e] += low_half(bits);
      }
    }
  }
}

// Named barriers; 0 is that of the block. kQueriesThere: of each warpgroup, its queries are in shared memory. kTurn: of
// each warpgroup, it may issue its products.
constexpr uint kQueriesThere = 2, kTurn = 4;

template <uint kDims, uint kGroups, class Cache>
AKUNU_DEVICE void attend_rows(const AttentionStages<kDims, kGroups>& stages,
                              const AttentionTile& tile, const Cache& cache, const SeenByRows& seen,
                              const SeenByRows& own_seen, uint consumer, uint warp, uint lane) {
  using Stages = AttentionStages<kDims, kGroups>;
  const uint first_row = consumer * kQueryRows, own_row = first_row + 16 * warp + lane / 4;
  RunningSoftmax softmax;
  float factors[2] = {1.0f, 1.0f};
  round_queries<kDims>(tile, first_row, stages.queries(consumer), warp, lane, factors);
  meet_at(kQueriesThere + consumer, kWarpgroupThreads);
  uint begin[2] = {0, 0}, end[2] = {0, 0};
#pragma unroll
  for (uint part = 0; part < 2; ++part) {
    softmax.factor[part] = tile.scale * 0x1.715476p+0f / factors[part];
    softmax.top[part] = -as_type<float>(0x7f800000u);
    softmax.shift[part] = softmax.total[part] = 0.0f;
    if (own_row + 8 * part >= tile.n_rows) continue;
    const auto own = cache.range(own_row + 8 * part);
    begin[part] = own.begin;
    end[part] = own.end;
  }
  float scores[64], results[kDims / 2], shrink[2];
  uint weights[kTilePositions / 16][4];
#pragma unroll
  for (uint i = 0; i < 64; ++i) scores[i] = 0.0f;
#pragma unroll
  for (uint i = 0; i < kDims / 2; ++i) results[i] = 0.0f;
  const ulong queries = inputs_at(stages.queries(consumer));

  const auto multiply_keys = [&](uint stage) {
    const ulong keys = inputs_at(stages.keys(stage));
    begin_products();
#pragma unroll
    for (uint i = 0; i < kDims / 16; ++i)
      add_scores(scores, further(queries, i / 4 * (kQueryRows * 128) + i % 4 * 32),
                 further(keys, i / 4 * Stages::kSlabBytes + i % 4 * 32), i == 0 ? 0 : 1);
    end_products();
  };
  const auto multiply_values = [&](uint stage) {
    const ulong values = values_at(stages.values(stage), Stages::kSlabBytes);
    begin_products();
#pragma unroll
    for (uint i = 0; i < kTilePositions / 16; ++i)
      add_values(results, weights[i], further(values, i * 2048));
    end_products();
  };
  const auto weigh_block = [&](uint first) {
    if (first < own_seen.all_begin || first + kTilePositions > own_seen.all_end)
      cut_scores(scores, first + lane % 4 * 2, begin, end);
    weigh(softmax, scores, shrink);
  };
  const auto pack_weights = [&] {
#pragma unroll
    for (uint i = 0; i < kTilePositions / 16; ++i)
#pragma unroll
      for (uint j = 0; j < 4; ++j)
        weights[i][j] = pack_halves(scores[8 * i + 2 * j], scores[8 * i + 2 * j + 1]);
  };
  // The products with values are over.
  const auto end_values = [&](uint stage, uint first, bool is_spoilt) {
#pragma unroll
    for (uint i = 0; i < kTilePositions / 16; ++i) settle(weights[i]);
    if (lane == 0) arrive(stages.wants_values(stage));
    if (is_spoilt)
      add_not_finite<kDims>(results, cache.values(first), first, seen, begin, end, lane);
  };

  const auto attend = [&] {
    Turn<Stages::kStages> turn, last;
    uint first = seen.first_block();
    if (kGroups == 2 && consumer == 1 && first + kTilePositions < seen.end)
      come_to(kTurn, 2 * kWarpgroupThreads);  // the first turn is the other's
    wait_for_phase(stages.has_keys(0), 0);
    multiply_keys(0);
    wait_for_products(scores);
    if (lane == 0) arrive(stages.wants_keys(0));
    weigh_block(first);
    pack_weights();
    turn.next();
#pragma unroll 1
    for (; first + kTilePositions < seen.end; last = turn, turn.next()) {
      const uint next = first + kTilePositions;
      if (kGroups == 2) meet_at(kTurn + consumer, 2 * kWarpgroupThreads);
      wait_for_phase(stages.has_keys(turn.stage), turn.parity);
      multiply_keys(turn.stage);
      wait_for_phase(stages.has_values(last.stage), last.parity);
      const bool is_spoilt = *stages.spoilt(last.stage) == first + 1;
      multiply_values(last.stage);
      if (kGroups == 2 && (consumer == 0 || next + kTilePositions < seen.end))
        come_to(kTurn + 1 - consumer, 2 * kWarpgroupThreads);
      wait_for_products<1>(scores);
      if (lane == 0) arrive(stages.wants_keys(turn.stage));
      weigh_block(next);
      compute_before_wait(softmax.total[0] + softmax.total[1], stages.unused());
      wait_for_products(results);
      end_values(last.stage, first, is_spoilt);
#pragma unroll
      for (uint i = 0; i < kDims / 2; ++i) results[i] = results[i] * shrink[i / 2 % 2];
      pack_weights();
      first = next;
    }
    wait_for_phase(stages.has_values(last.stage), last.parity);
    const bool is_spoilt = *stages.spoilt(last.stage) == first + 1;
    multiply_values(last.stage);
    wait_for_products(results);
    end_values(last.stage, first, is_spoilt);
  };
  if (seen.begin < seen.end) attend();

#pragma unroll
  for (uint part = 0; part < 2; ++part) {
    float total = softmax.total[part];
    total += simd_shuffle_xor(total, 1);
    total += simd_shuffle_xor(total, 2);
    const uint row = own_row + 8 * part;
    if (row >= tile.n_rows) continue;
    const float share = 1.0f / total;
    float2* const to =
        reinterpret_cast<float2*>(tile.out + ulong(row) * tile.row_stride) + lane % 4;
#pragma unroll
    for (uint j = 0; j < kDims / 8; ++j)
      to[4 * j] = end[part] > begin[part] ? float2(results[4 * j + 2 * part] * share,
                                                   results[4 * j + 2 * part + 1] * share)
                                          : float2(0.0f, 0.0f);
  }
}

// Attention of the rows of a tile, at most 64 for each of the kGroups (1 or 2) warpgroups that multiply, with 128 threads
// more and AttentionStages<kDims, kGroups>::kBytes of shared memory. The bits of a row are the same with one or two.
template <uint kDims, uint kGroups, class Cache>
AKUNU_DEVICE void attend_prompt_tile(const AttentionTile& tile, const Cache& cache, uchar* memory,
                                     uint thread_index) {
  if constexpr (!kHasWarpgroups) return;
  const AttentionStages<kDims, kGroups> stages(memory);
  const uint warp = thread_index / 32, lane = thread_index % 32;
  stages.begin(thread_index);
  const auto look = [&](SeenByRows& own_seen) {
    SeenByRows seen = own_seen = seen_by(cache, 0, tile.n_rows, lane);
    if (kGroups == 2) {
      const SeenByRows second = seen_by(cache, 1, tile.n_rows, lane);
      seen.add(second);
      if (warp / 4 == 1) own_seen = second;
    }
    return seen;
  };
  SeenByRows own_seen;
  if (warp >= 4 * kGroups) {
    if (kGroups == 2) leave_registers<40>();
    const SeenByRows seen = look(own_seen);
    if (warp < 4 * kGroups + kCopyThreads / 32)
      copy_blocks<false>(stages, cache, seen, thread_index % kCopyThreads);
    else
      copy_blocks<true>(stages, cache, seen, thread_index % kCopyThreads);
  } else {
    if (kGroups == 2) take_registers<232>();
    const SeenByRows seen = look(own_seen);
    attend_rows(stages, tile, cache, seen, own_seen, warp / 4, warp % 4, lane);
  }
}

}  // namespace gpu
