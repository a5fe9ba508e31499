// attention of prompts: tiles of query rows against blocks of positions, with a running softmax.
//
// Floor: 4 head_dim operations per query head and position it sees; keys and values come from
// memory once per tile of rows. A threadgroup takes 32 consecutive rows of one span (16 where a
// head has more than 128 dimensions, 8 above 256) and one query head. Four SIMD-groups own eight rows
// each; with large heads, two or all four own the same eight rows, and 128 dimensions each. Queries
// and results stay in registers as 8 x 8 matrices (32 each per lane, of float32), scores pass
// through threadgroup memory, where four lanes share a row. Keys and then values of a block of 32
// positions (16, 8) lie in one tile of threadgroup memory as float32. 23 KB, four barriers per block.
//
// Blocks begin at multiples of 32 (16, 8), whichever rows a tile has, and a position that a row does
// not see weighs exactly 0: a row's bits depend on its own range alone. Causality is the row's
// kv_length, an absolute position, so a prompt that goes on after a cached beginning masks right;
// rows that see nothing of a block are never exponentiated from -inf - -inf.
//
// Nobody documents which lane holds which element of a simdgroup matrix, so rows are scaled through
// threadgroup memory: seldom, as the largest score of a row soon stays. (A product with a diagonal
// matrix would also turn one row's infinity into every row's NaN.)
//
// Nor may a value that only some rows see spoil the others where it is not finite (0 * inf is NaN):
// such a block takes the slow way at the end of the loop.
#include <metal_simdgroup_matrix>

#include "metal/kernels/attention_split.h"

constant constexpr uint kFragments = 16;  // of eight dimensions, per SIMD-group
constant constexpr uint kScratch = 64;    // floats: one matrix

// Loads positions [first, first + n_positions), of which `head` is the first, into `tile`, zeros for those outside
// [begin, end) and past head_dim. Returns whether all of it is finite.
template <class Cache>
inline bool load_tile(device const Cache* head, uint first, uint n_positions, uint begin, uint end,
                      uint head_dim, threadgroup float* tile, uint stride, uint thread_index,
                      uint n_threads) {
  const bool aligned = head_dim % 4 == 0;
  const uint pieces = (head_dim + 7) / 8 * 2;
  bool all_finite = true;
  for (uint task = thread_index; task < n_positions * pieces; task += n_threads) {
    const uint i = task / pieces, d = task % pieces * 4;
    float4 v = float4(0.0f);
    if (first + i >= begin && first + i < end && d < head_dim)
      v = load_cached(head, ulong(i) * head_dim + d, head_dim - d, aligned);
    *reinterpret_cast<threadgroup float4*>(tile + i * stride + d) = v;
    all_finite = all_finite && is_finite(v.x) && is_finite(v.y) && is_finite(v.z) && is_finite(v.w);
  }
  return all_finite;
}

// kParts: SIMD-groups that share eight rows. Grid: (tiles, n_heads); `memory`: the tile, a matrix
// row of scores for each SIMD-group, its scratch, and a flag.
template <class Keys, class Values, uint kParts>
[[kernel]] void attention_tiled(
    device const float* query [[buffer(0)]], device const Keys* key_cache [[buffer(1)]],
    device const Values* value_cache [[buffer(2)]], device float* out [[buffer(3)]],
    device const float* sinks [[buffer(4), function_constant(kIsBound4)]],
    constant PassRange& pass [[buffer(23)]], constant AttentionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    device const Span* spans [[buffer(30)]], threadgroup float* memory [[threadgroup(0)]],
    threadgroup atomic_uint* flag [[threadgroup(1)]], uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint kPositions = 32 / kParts, kTileRows = 32 / kParts, kThreads = 128;
  constexpr uint kScoreStride = kPositions + 4, kOwnScores = kPositions / 4;

  // Which tile of which span.
  uint tile_index = group.x, span_index = 0;
  for (; span_index < pass.n_spans; ++span_index) {
    const uint tiles = (spans[pass.first_span + span_index].n_rows + kTileRows - 1) / kTileRows;
    if (tile_index < tiles) break;
    tile_index -= tiles;
  }
  if (span_index == pass.n_spans) return;
  device const Span& span = spans[pass.first_span + span_index];
  const uint first_row = span.first_row + tile_index * kTileRows;
  const uint n_rows = min(uint(kTileRows), span.n_rows - tile_index * kTileRows);

  const uint head_dim = params.head_dim, head = group.y;
  const uint kv_head = head / (params.n_heads / params.n_kv_heads);
  const uint n_fragments = (head_dim + 7) / 8;
  const uint stride = n_fragments * 8 + 4;
  threadgroup float* tile = memory;
  threadgroup float* all_scores = memory + kPositions * stride;
  threadgroup float* scores = all_scores + simdgroup * 8 * kScoreStride;
  threadgroup float* scratch = all_scores + 4 * 8 * kScoreStride + simdgroup * kScratch;

  const uint part = simdgroup % kParts, own_first_row = simdgroup / kParts * 8;
  const uint first_fragment = part * kFragments;
  const uint own_fragments =
      n_fragments > first_fragment ? min(uint(kFragments), n_fragments - first_fragment) : 0;

  // What the tile's rows see: [begin, end) some of them, [all_begin, all_end) all of them. A lane
  // stands for one row here, and then for a quarter of row lane / 4 of its SIMD-group.
  uint begin = 0xffffffffu, end = 0, all_begin = 0, all_end = 0xffffffffu;
  if (lane < n_rows) {
    const Visible seen = visible_to(rows[first_row + lane], params.window);
    begin = all_begin = seen.begin;
    end = all_end = seen.end;
  }
  begin = simd_min(begin);
  end = simd_max(end);
  all_begin = simd_max(all_begin);
  all_end = simd_min(all_end);
  const uint own_row = own_first_row + lane / 4;
  uint own_begin = 0, own_end = 0;
  if (own_row < n_rows) {
    const Visible seen = visible_to(rows[first_row + own_row], params.window);
    own_begin = seen.begin;
    own_end = seen.end;
  }

  // The queries pass through the tile once.
  for (uint task = thread_index; task < kTileRows * n_fragments * 8; task += kThreads) {
    const uint r = task / (n_fragments * 8), d = task % (n_fragments * 8);
    tile[r * stride + d] =
        r < n_rows && d < head_dim
            ? query[(ulong(first_row + r) * params.n_heads + head) * head_dim + d]
            : 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 queries[kFragments], values[kFragments];
#pragma unroll
  for (uint f = 0; f < kFragments; ++f) {
    values[f] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    if (f < own_fragments)
      simdgroup_load(queries[f], tile + own_first_row * stride + (first_fragment + f) * 8, stride);
  }
  float largest = -infinity(), total = 0.0f;

  for (uint first = begin / kPositions * kPositions; first < end; first += kPositions) {
    const uint page =
        page_of(pages, params.page_table_base, params.page_table_stride, span.sequence, first);
    const ulong offset =
        kv_offset(page, params.n_kv_heads, kv_head, first % kPagePositions, head_dim);

    // Everyone is through with what lies in the tile, the queries or the block before.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index == 0) atomic_store_explicit(flag, 0u, memory_order_relaxed);
    load_tile(cached_at(key_cache, offset), first, kPositions, begin, end, head_dim, tile, stride,
              thread_index, kThreads);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < kPositions; j += 8) {
      simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma unroll
      for (uint f = 0; f < kFragments; ++f) {
        if (f >= own_fragments) continue;
        simdgroup_float8x8 keys;
        simdgroup_load(keys, tile + j * stride + (first_fragment + f) * 8, stride, ulong2(0), true);
        simdgroup_multiply_accumulate(sum, queries[f], keys, sum);
      }
      simdgroup_store(sum, scores + j, kScoreStride);
    }
    // Scores are there, of both parts; and nobody needs the keys any more.
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float own[kOwnScores], top = largest;
#pragma unroll
    for (uint i = 0; i < kOwnScores; ++i) {
      const uint column = lane % 4 * kOwnScores + i, position = first + column;
      const uint at = lane / 4 * kScoreStride + column;
      float score = 0.0f;
      for (uint p = 0; p < kParts; ++p)
        score += all_scores[(simdgroup / kParts * kParts + p) * 8 * kScoreStride + at];
      score = score * params.scale;
      if (params.soft_cap > 0.0f) score = params.soft_cap * tanh_of(score / params.soft_cap);
      own[i] = score;
      if (position >= own_begin && position < own_end) top = max(top, score);
    }
    top = max(top, simd_shuffle_xor(top, 1));
    top = max(top, simd_shuffle_xor(top, 2));
    float sum = 0.0f;
#pragma unroll
    for (uint i = 0; i < kOwnScores; ++i) {
      const uint position = first + lane % 4 * kOwnScores + i;
      own[i] = position >= own_begin && position < own_end ? exp_of(own[i] - top) : 0.0f;
      sum += own[i];
    }
    sum += simd_shuffle_xor(sum, 1);
    sum += simd_shuffle_xor(sum, 2);
    const float shrink = top == largest ? 1.0f : exp_of(largest - top);
    total = fma(total, shrink, sum);
    largest = top;

    if (!load_tile(cached_at(value_cache, offset), first, kPositions, begin, end, head_dim, tile, stride,
                   thread_index, kThreads))
      atomic_store_explicit(flag, 1u, memory_order_relaxed);
    // The values are there, and both parts have read the scores that the weights replace.
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint i = 0; i < kOwnScores; ++i)
      scores[lane / 4 * kScoreStride + lane % 4 * kOwnScores + i] = own[i];
    const bool is_spoilt = atomic_load_explicit(flag, memory_order_relaxed) != 0 &&
                           (first < all_begin || first + kPositions > all_end);
    if (is_spoilt) {
      for (uint task = thread_index; task < kPositions * stride; task += kThreads)
        if (task % stride < n_fragments * 8 && !is_finite(tile[task])) tile[task] = 0.0f;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    // Element 2 lane of a matrix in `scratch` is of row lane / 4, as is all that the lane knows.
    if (simd_any(shrink != 1.0f)) {
#pragma unroll
      for (uint f = 0; f < kFragments; ++f) {
        if (f >= own_fragments) continue;
        simdgroup_store(values[f], scratch, 8);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        scratch[2 * lane] = scratch[2 * lane] * shrink;
        scratch[2 * lane + 1] = scratch[2 * lane + 1] * shrink;
        simdgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_load(values[f], scratch, 8);
        simdgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
    for (uint j = 0; j < kPositions; j += 8) {
      simdgroup_float8x8 weights;
      simdgroup_load(weights, scores + j, kScoreStride);
#pragma unroll
      for (uint f = 0; f < kFragments; ++f) {
        if (f >= own_fragments) continue;
        simdgroup_float8x8 loaded;
        simdgroup_load(loaded, tile + j * stride + (first_fragment + f) * 8, stride);
        simdgroup_multiply_accumulate(values[f], weights, loaded, values[f]);
      }
    }
    if (is_spoilt) {
      // What is not finite, for the rows that see it alone.
      device const Values* cached = cached_at(value_cache, offset);
#pragma unroll
      for (uint f = 0; f < kFragments; ++f) {
        if (f >= own_fragments) continue;
        simdgroup_store(values[f], scratch, 8);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint e = 0; e < 2; ++e) {
          const uint d = (first_fragment + f) * 8 + lane % 4 * 2 + e;
          float value = scratch[2 * lane + e];
          for (uint i = 0; i < kPositions && d < head_dim; ++i) {
            if (first + i < own_begin || first + i >= own_end) continue;
            const float v = cached_number(cached, ulong(i) * head_dim + d);
            if (!is_finite(v)) value = fma(scores[lane / 4 * kScoreStride + i], v, value);
          }
          scratch[2 * lane + e] = value;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_load(values[f], scratch, 8);
        simdgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
  }

  if (kIsBound4) total = total + exp_of(sinks[head] - largest);
#pragma unroll
  for (uint f = 0; f < kFragments; ++f) {
    if (f >= own_fragments) continue;
    simdgroup_store(values[f], scratch, 8);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = 0; e < 2; ++e) {
      const uint d = (first_fragment + f) * 8 + lane % 4 * 2 + e;
      if (own_row < n_rows && d < head_dim)
        out[(ulong(first_row + own_row) * params.n_heads + head) * head_dim + d] =
            own_end > own_begin ? scratch[2 * lane + e] / total : 0.0f;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
}

#define AKUNU_TILED(name, Keys, Values, parts) \
  template [[host_name("attention_tiled_" #name "_p" #parts)]] [[kernel]] decltype( \
      attention_tiled<Keys, Values, parts>) attention_tiled<Keys, Values, parts>;
AKUNU_TILED(f16, half, half, 1)
AKUNU_TILED(f16, half, half, 2)
AKUNU_TILED(f16, half, half, 4)
AKUNU_TILED(f32, float, float, 1)
AKUNU_TILED(f32, float, float, 2)
AKUNU_TILED(f32, float, float, 4)
AKUNU_TILED(q8_0, CacheQ8_0, CacheQ8_0, 1)
AKUNU_TILED(q8_0, CacheQ8_0, CacheQ8_0, 2)
AKUNU_TILED(q8_0, CacheQ8_0, CacheQ8_0, 4)
AKUNU_TILED(q4_0, CacheQ8_0, CacheQ4_0, 1)
AKUNU_TILED(q4_0, CacheQ8_0, CacheQ4_0, 2)
AKUNU_TILED(q4_0, CacheQ8_0, CacheQ4_0, 4)
