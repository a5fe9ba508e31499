// attention of prompts on tensor cores, over a cache of halves: tiles of query rows against blocks
// of positions, with a running softmax (FlashAttention-2, arXiv 2307.08691).
//
// 1. Floor: 4 head_dim operations per query head and position it sees. A threadgroup takes kRows
//    consecutive rows of one span and one query head; a warp owns 16 of them, all their results and
//    the scores of a block, in registers.
// 2. Keys and values are halves, which tensor cores multiply as they are. A query and a weight of
//    the softmax are the sums of two halves: scaled by a power of two so that the largest of a row
//    is near 2^14, they keep 22 bits. So every product costs two.
// 3. Keys and values are copied beside the arithmetic: the next block's keys while weights are
//    computed and values multiplied, its values while scores are.
// 4. Blocks begin at multiples of kPositions, whichever rows a tile has, and a position that a row
//    does not see weighs exactly 0: a row's bits depend on its own range alone.
// 5. A value that only some of the rows see must not spoil the others where it is not finite
//    (0 * inf is NaN): it is taken out of the block and added for those rows at the end.
//
// head_dim is a multiple of eight (kernel_table.cpp) and at most kDims; dimensions past it are 0.
#include "cuda/kernels/launch.cuh"
#include "metal/kernels/attention_split.cuh"

namespace gpu {

constexpr uint kPad = 8;                  // halves between rows that keep banks apart
constexpr float kWeightScale = 16384.0f;  // of the softmax's weights

// 2^exponent, from the exponent as float32 stores it.
__device__ inline float power_of_two(uint stored) { return as_type<float>(stored << 23); }

// Two numbers as halves in one word, and what that leaves of them.
__device__ inline uint take_halves(float& first, float& second) {
  const half a = half(first), b = half(second);
  first = first - float(a);
  second = second - float(b);
  return uint(as_type<ushort>(a)) | uint(as_type<ushort>(b)) << 16;
}

__device__ inline bool is_finite(half x) { return (as_type<ushort>(x) & 0x7c00u) != 0x7c00u; }

// Starts the copy of positions [first, first + kPositions) of a pool; zeros for those outside
// [begin, end) and for dimensions past head_dim.
template <uint kDims, uint kPositions>
__device__ inline void copy_block(const half* pool, uint first, uint begin, uint end, uint head_dim,
                                  half* tile, uint thread_index, uint n_threads) {
  constexpr uint kPieces = kDims / 8;
#pragma unroll 4
  for (uint task = thread_index; task < kPositions * kPieces; task += n_threads) {
    const uint i = task / kPieces, d = task % kPieces * 8;
    const bool is_there = first + i >= begin && first + i < end && d < head_dim;
    copy_16_bytes(tile + i * (kDims + kPad) + d, pool + (is_there ? i * head_dim + d : 0),
                  is_there);
  }
  end_copies();
}

// Takes what is not finite out of a block. Returns whether there was any.
template <uint kDims, uint kPositions>
__device__ inline bool clear_not_finite(half* tile, uint thread_index, uint n_threads) {
  bool any = false;
  for (uint task = thread_index; task < kPositions * kDims; task += n_threads) {
    half& value = tile[task / kDims * (kDims + kPad) + task % kDims];
    if (is_finite(value)) continue;
    value = half(0.0f);
    any = true;
  }
  return any;
}

// Grid: (tiles, n_heads), 2 kRows threads. `memory`: the two halves of the queries [kRows][kDims +
// kPad], keys, and values [kPositions][kDims + kPad]; where the values lie there is room for
// float[kRows][kPositions + 1].
template <uint kDims, uint kRows, uint kPositions>
__device__ void attention_prompt(const float* query, const half* key_cache, const half* value_cache,
                                 float* out, const PassRange& pass, const AttentionParams& params,
                                 const Row* rows, const uint* pages, const Span* spans,
                                 half* memory, uint3 group, uint thread_index, uint simdgroup,
                                 uint lane) {
  constexpr uint kStride = kDims + kPad, kThreads = 2 * kRows;
  constexpr uint kTiles = kPositions / 8, kOutTiles = kDims / 8;  // of eight columns

  // Which tile of which span.
  uint tile_index = group.x, span_index = 0;
  for (; span_index < pass.n_spans; ++span_index) {
    const uint tiles = (spans[pass.first_span + span_index].n_rows + kRows - 1) / kRows;
    if (tile_index < tiles) break;
    tile_index -= tiles;
  }
  if (span_index == pass.n_spans) return;
  const Span& span = spans[pass.first_span + span_index];
  const uint first_row = span.first_row + tile_index * kRows;
  const uint n_rows = min(uint(kRows), span.n_rows - tile_index * kRows);
  const uint head_dim = params.head_dim, head = group.y;
  const uint kv_head = head / (params.n_heads / params.n_kv_heads);

  half* queries = memory;
  half* keys = queries + 2 * kRows * kStride;
  half* values = keys + kPositions * kStride;

  // What the tile's rows see: [begin, end) some of them, [all_begin, all_end) all of them.
  uint begin = 0xffffffffu, end = 0, all_begin = 0, all_end = 0xffffffffu;
  for (uint r = lane; r < n_rows; r += 32) {
    const Visible seen = visible_to(rows[first_row + r], params.window);
    begin = min(begin, seen.begin);
    end = max(end, seen.end);
    all_begin = max(all_begin, seen.begin);
    all_end = min(all_end, seen.end);
  }
  begin = simd_min(begin);
  end = simd_max(end);
  all_begin = simd_max(all_begin);
  all_end = simd_min(all_end);
  const auto block_of = [&](uint first) {
    const uint page =
        page_of(pages, params.page_table_base, params.page_table_stride, span.sequence, first);
    return kv_offset(page, params.n_kv_heads, kv_head, first % kPagePositions, head_dim);
  };
  const uint first_block = begin / kPositions * kPositions;
  if (first_block < end) {
    const ulong offset = block_of(first_block);
    copy_block<kDims, kPositions>(key_cache + offset, first_block, begin, end, head_dim, keys,
                                  thread_index, kThreads);
    copy_block<kDims, kPositions>(value_cache + offset, first_block, begin, end, head_dim, values,
                                  thread_index, kThreads);
  }

  // Each warp's queries, and what undoes their scale. A lane's own rows are lane / 4 and eight
  // below it.
  const uint own_row = 16 * simdgroup, pair = lane % 4 * 2;
  float unscale[2] = {1.0f, 1.0f};
  for (uint r = 0; r < 16; ++r) {
    const uint row = own_row + r;
    const float* from =
        query + (ulong(first_row + min(row, n_rows - 1)) * params.n_heads + head) * head_dim;
    float largest = 0.0f;
    for (uint d = lane; d < head_dim; d += 32) largest = max(largest, fabs(from[d]));
    const uint stored = max(as_type<uint>(simd_max(largest)) >> 23, 14u);
    const bool is_usual = stored < 255;
    const float scale = is_usual ? power_of_two(267 - stored) : 1.0f;
    if (lane / 4 == r % 8) unscale[r / 8] = is_usual ? power_of_two(stored - 13) : 1.0f;
    for (uint d = 2 * lane; d < kDims; d += 64) {
      float first = d < head_dim ? from[d] * scale : 0.0f;
      float second = d < head_dim ? from[d + 1] * scale : 0.0f;
      uint* to = reinterpret_cast<uint*>(queries + row * kStride + d);
      to[0] = take_halves(first, second);
      to[kRows * kStride / 2] = take_halves(first, second);
    }
  }
  uint own_begin[2] = {0, 0}, own_end[2] = {0, 0};
#pragma unroll
  for (uint half_tile = 0; half_tile < 2; ++half_tile) {
    const uint row = own_row + lane / 4 + 8 * half_tile;
    if (row >= n_rows) continue;
    const Visible seen = visible_to(rows[first_row + row], params.window);
    own_begin[half_tile] = seen.begin;
    own_end[half_tile] = seen.end;
  }

  float results[kOutTiles][4];
#pragma unroll
  for (uint j = 0; j < kOutTiles; ++j)
#pragma unroll
    for (uint e = 0; e < 4; ++e) results[j][e] = 0.0f;
  float largest[2] = {-infinity(), -infinity()}, total[2] = {0.0f, 0.0f};

  for (uint first = first_block; first < end; first += kPositions) {
    const uint next = first + kPositions;
    wait_for_copies<1>();  // the keys are there, the values may be on their way
    __syncthreads();
    float scores[kTiles][4];
#pragma unroll
    for (uint j = 0; j < kTiles; ++j)
#pragma unroll
      for (uint e = 0; e < 4; ++e) scores[j][e] = 0.0f;
#pragma unroll 4
    for (uint d = 0; d < kDims; d += 16) {
      uint a[2][4];
#pragma unroll
      for (uint part = 0; part < 2; ++part)
        load_matrices(a[part],
                      queries + (part * kRows + own_row + lane % 16) * kStride + d + lane / 16 * 8);
#pragma unroll
      for (uint two = 0; two < kTiles; two += 2) {
        uint b[4];
        load_matrices(b,
                      keys + (8 * two + lane / 16 * 8 + lane % 8) * kStride + d + lane / 8 % 2 * 8);
#pragma unroll
        for (uint one = 0; one < 2; ++one)
#pragma unroll
          for (uint part = 2; part-- > 0;)
            multiply_float16(scores[two + one], a[part], b[2 * one], b[2 * one + 1]);
      }
    }
    __syncthreads();  // everyone is through with the keys
    if (next < end)
      copy_block<kDims, kPositions>(key_cache + block_of(next), next, begin, end, head_dim, keys,
                                    thread_index, kThreads);
    else
      end_copies();

#pragma unroll
    for (uint half_tile = 0; half_tile < 2; ++half_tile) {
      const float undo = unscale[half_tile];
      float top = largest[half_tile], sum = 0.0f;
#pragma unroll
      for (uint j = 0; j < kTiles; ++j)
#pragma unroll
        for (uint e = 0; e < 2; ++e) {
          const uint position = first + 8 * j + pair + e;
          float& score = scores[j][2 * half_tile + e];
          score = score * undo * params.scale;
          if (params.soft_cap > 0.0f) score = params.soft_cap * tanh_of(score / params.soft_cap);
          if (position >= own_begin[half_tile] && position < own_end[half_tile])
            top = max(top, score);
        }
      top = max(top, simd_shuffle_xor(top, 1));
      top = max(top, simd_shuffle_xor(top, 2));
#pragma unroll
      for (uint j = 0; j < kTiles; ++j)
#pragma unroll
        for (uint e = 0; e < 2; ++e) {
          const uint position = first + 8 * j + pair + e;
          float& score = scores[j][2 * half_tile + e];
          score = position >= own_begin[half_tile] && position < own_end[half_tile]
                      ? exp_of(score - top)
                      : 0.0f;
          sum += score;
        }
      sum += simd_shuffle_xor(sum, 1);
      sum += simd_shuffle_xor(sum, 2);
      const float shrink = top == largest[half_tile] ? 1.0f : exp_of(largest[half_tile] - top);
      total[half_tile] = fma(total[half_tile], shrink, sum);
      largest[half_tile] = top;
#pragma unroll
      for (uint j = 0; j < kOutTiles; ++j)
#pragma unroll
        for (uint e = 0; e < 2; ++e)
          results[j][2 * half_tile + e] = results[j][2 * half_tile + e] * shrink;
    }

    wait_for_copies<1>();  // the values are there, the next keys may be on their way
    __syncthreads();
    bool is_spoilt = false;
    if (first < all_begin || next > all_end)
      is_spoilt =
          any_of_threadgroup(clear_not_finite<kDims, kPositions>(values, thread_index, kThreads));
#pragma unroll
    for (uint step = 0; step < kPositions / 16; ++step) {
      uint a[2][4];
#pragma unroll
      for (uint e = 0; e < 4; ++e) {
        const uint j = 2 * step + e / 2;
        float x = scores[j][e % 2 * 2] * kWeightScale, y = scores[j][e % 2 * 2 + 1] * kWeightScale;
        a[0][e] = take_halves(x, y);
        a[1][e] = take_halves(x, y);
      }
#pragma unroll
      for (uint two = 0; two < kOutTiles; two += 2) {
        uint b[4];
        load_matrices_transposed(b, values + (16 * step + lane / 8 % 2 * 8 + lane % 8) * kStride +
                                        8 * two + lane / 16 * 8);
#pragma unroll
        for (uint one = 0; one < 2; ++one)
#pragma unroll
          for (uint part = 2; part-- > 0;)
            multiply_float16(results[two + one], a[part], b[2 * one], b[2 * one + 1]);
      }
    }
    __syncthreads();  // everyone is through with the values
    if (is_spoilt) {
      float* weights = reinterpret_cast<float*>(values);
#pragma unroll
      for (uint j = 0; j < kTiles; ++j)
#pragma unroll
        for (uint e = 0; e < 4; ++e)
          weights[(own_row + lane / 4 + e / 2 * 8) * (kPositions + 1) + 8 * j + pair + e % 2] =
              scores[j][e] * kWeightScale;
      __syncthreads();
      const half* pool = value_cache + block_of(first);
      for (uint i = 0; i < kPositions; ++i) {
        if (first + i < begin || first + i >= end) continue;
#pragma unroll
        for (uint j = 0; j < kOutTiles; ++j)
#pragma unroll
          for (uint e = 0; e < 4; ++e) {
            const uint d = 8 * j + pair + e % 2, half_tile = e / 2;
            if (d >= head_dim || first + i < own_begin[half_tile] ||
                first + i >= own_end[half_tile])
              continue;
            const half v = pool[i * head_dim + d];
            if (!is_finite(v))
              results[j][e] =
                  fma(weights[(own_row + lane / 4 + half_tile * 8) * (kPositions + 1) + i],
                      float(v), results[j][e]);
          }
      }
      __syncthreads();
    }
    if (next < end)
      copy_block<kDims, kPositions>(value_cache + block_of(next), next, begin, end, head_dim,
                                    values, thread_index, kThreads);
    else
      end_copies();
  }

#pragma unroll
  for (uint j = 0; j < kOutTiles; ++j)
#pragma unroll
    for (uint e = 0; e < 4; ++e) {
      const uint row = own_row + lane / 4 + e / 2 * 8, d = 8 * j + pair + e % 2;
      if (row >= n_rows || d >= head_dim) continue;
      out[(ulong(first_row + row) * params.n_heads + head) * head_dim + d] =
          own_end[e / 2] > own_begin[e / 2] ? results[j][e] * (1.0f / kWeightScale) / total[e / 2]
                                            : 0.0f;
    }
}

#define AKUNU_PROMPT(dims, rows, positions)                                                       \
  AKUNU_KERNEL(attention_prompt_d##dims, ) {                                                      \
    inputs_ready();                                                                               \
    attention_prompt<dims, rows, positions>(                                                      \
        launch.slot(0), launch.slot(1), launch.slot(2), launch.slot(3), launch.pass(),            \
        launch.parameters(), launch.slot(26), launch.slot(27), launch.slot(30), launch.shared(0), \
        block_index(), threadIdx.x, threadIdx.x / 32, threadIdx.x % 32);                          \
  }
AKUNU_PROMPT(64, 64, 64)
AKUNU_PROMPT(128, 64, 64)
AKUNU_PROMPT(256, 32, 32)

}  // namespace gpu
