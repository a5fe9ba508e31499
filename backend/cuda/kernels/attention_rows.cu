// attention and rope_attention of rows that generate, over a cache of halves, for heads that are a multiple of 16: the arithmetic is
// in kernels/rows_attention.cuh. A block of 128 threads takes splits of a row and kv head (metal/kernels/attention_split.h says which
// positions those are).
//
// rope_attention begins before query, key and value are there: with the keys and values of earlier rows. Keys and values of the
// row's span are taken out of the operands, rounded as the cache has them, never out of memory that another block writes.
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/rows_attention.cuh"
#include "metal/kernels/attention_split.cuh"

namespace gpu {

// The positions of one sequence and kv head.
struct CachedUnits {
  const ushort* key_cache;
  const ushort* value_cache;
  const uint* pages;
  uint sequence, n_kv_heads, kv_head, head_dim, page_table_base, page_table_stride;

  __device__ ulong offset(uint position) const {
    const uint page = page_of(pages, page_table_base, page_table_stride, sequence, position);
    return kv_offset(page, n_kv_heads, kv_head, position % kPagePositions, head_dim);
  }
  __device__ const ushort* keys(uint position) const { return key_cache + offset(position); }
  __device__ const ushort* values(uint position) const { return value_cache + offset(position); }
};
template <class Params>
__device__ inline CachedUnits units_of(const Params& params, const ushort* key_cache,
                                       const ushort* value_cache, const uint* pages, uint sequence,
                                       uint kv_head) {
  return CachedUnits{key_cache,
                     value_cache,
                     pages,
                     sequence,
                     params.n_kv_heads,
                     kv_head,
                     params.head_dim,
                     params.page_table_base,
                     params.page_table_stride};
}

template <class Params>
__device__ inline AttendedRow attended_row(const Params& params, Row row, HeadChunk chunk,
                                           uint index, uint local_row, uint place, float* workspace,
                                           float* out) {
  const Visible seen = visible_in(row.position, row.kv_length, params.window);
  return AttendedRow{
      seen.begin,
      seen.end,
      chunk.n_queries,
      params.head_dim,
      params.scale,
      params.soft_cap,
      out + (ulong(index) * params.n_heads + chunk.first_head) * params.head_dim,
      workspace + partial_offset(local_row, params.n_heads, chunk.first_head, 0, params.head_dim),
      place};
}

// Of rows whose keys and values are all in the cache.
struct NoOwnRows {
  uint first;
  __device__ void place(uint, ushort*, ushort*, uint) const {}
};

// Grid: (blocks that share the splits of a row, kv heads * chunks of query heads, rows).
template <uint kDims, uint kHeads>
__device__ void attention_rows(const float* query, const ushort* key_cache,
                               const ushort* value_cache, float* out, const PassRange& pass,
                               float* workspace, const AttentionParams& params, const Row* rows,
                               const uint* pages, uchar* shared, uint3 group, uint3 groups,
                               uint thread_index) {
  const uint index = pass.first_row + group.z;
  const Row own = rows[index];
  const HeadChunk chunk = chunk_of(group.y, params.n_heads, params.n_kv_heads);
  const AttendedRow row = attended_row(params, own, chunk, index, group.z,
                                       group.z * groups.y + group.y, workspace, out);
  if (row.n_units() == 0 && group.x == 0) write_zeros(row, thread_index);
  if (group.x >= min(row.n_units(), kRowSplits)) return;
  const RowMemory<kHeads> memory = row_memory<kHeads>(shared, row.head_dim);
  const CachedUnits cache =
      units_of(params, key_cache, value_cache, pages, own.sequence, chunk.kv_head);
  const NoOwnRows no_own = NoOwnRows{kNone};
  const SplitsOfBlock splits = SplitsOfBlock{group.x, groups.x};
  begin_row(memory, row, cache, no_own.first, splits, thread_index);
  const float* heads = query + (ulong(index) * params.n_heads + chunk.first_head) * row.head_dim;
  for (uint head = thread_index / 32; head < kHeads; head += kRowWarps)
    split_query(memory, head < chunk.n_queries ? heads + head * row.head_dim : nullptr, head,
                row.head_dim, thread_index % 32);
  __syncthreads();
  attend_row<kDims>(memory, row, cache, no_own, splits, thread_index);
}

// A head, normed and turned, by a SIMD-group, as turn_heads of attention_split.h does it; all loads are under way at
// once. The result is rounded to Number.
template <uint kDims, class Number>
__device__ inline void turn_head(const float* data, const float* norm, bool has_norm,
                                 const float* angles, const RopeAttentionParams& params, Number* to,
                                 uint lane) {
  constexpr uint kPairs = kDims / 64;  // of a lane
  const uint head_dim = params.head_dim, n_pairs = params.n_pairs;
  float x[2 * kPairs];  // for the norm
  float2 values[kPairs], norms[kPairs], turns[kPairs];
#pragma unroll
  for (uint j = 0; j < 2 * kPairs; ++j) {
    const uint i = lane + 32 * j;
    x[j] = has_norm && i < head_dim ? data[i] : 0.0f;
  }
#pragma unroll
  for (uint j = 0; j < kPairs; ++j) {
    const uint i = lane + 32 * j;
    if (i >= n_pairs) continue;
    const uint2 pair = pair_of(i, n_pairs, params.style);
    values[j] = float2(data[pair.x], data[pair.y]);
    turns[j] = float2(angles[2 * i], angles[2 * i + 1]);
    if (has_norm) norms[j] = float2(norm[pair.x], norm[pair.y]);
  }
  float factor = 1.0f;
  if (has_norm) {
    float sum = 0.0f;
#pragma unroll
    for (uint j = 0; j < 2 * kPairs; ++j)
      if (lane + 32 * j < head_dim) sum = fma(x[j], x[j], sum);
    factor = 1.0f / sqrt(simd_sum(sum) / float(head_dim) + params.epsilon);
  }
#pragma unroll
  for (uint j = 0; j < kPairs; ++j) {
    const uint i = lane + 32 * j;
    if (i >= n_pairs) continue;
    float a = values[j].x, b = values[j].y;
    if (has_norm) {
      a = (a * factor) * norms[j].x;
      b = (b * factor) * norms[j].y;
    }
    const uint2 pair = pair_of(i, n_pairs, params.style);
    const float first = fma(a, turns[j].x, -(b * turns[j].y));
    const float second = fma(b, turns[j].x, a * turns[j].y);
    to[pair.x] = Number(first);
    to[pair.y] = Number(second);
  }
  for (uint i = 2 * n_pairs + lane; i < head_dim; i += 32) {
    const float rest = has_norm ? (data[i] * factor) * norm[i] : data[i];
    to[i] = Number(rest);
  }
}

// Keys and values that are not in the cache yet: those of this step, of the row's sequence, from position `first` to the row.
template <uint kDims>
struct OwnRows {
  uint first;
  uint position;  // the row's own, whose key and value are in shared memory
  const ushort* own_key;
  const ushort* own_value;
  const float* key;  // of this kv head, at the row of position `first`
  const float* value;
  const float* norm;
  bool has_norm;
  const float* angles;
  const RopeAttentionParams* params;

  __device__ void place(uint at, ushort* to_key, ushort* to_value, uint lane) const {
    const uint head_dim = params->head_dim;
    if (at == position) {
      for (uint d = lane; d < head_dim; d += 32) {
        to_key[d] = own_key[d];
        to_value[d] = own_value[d];
      }
      return;
    }
    const ulong from = ulong(at - first) * params->n_kv_heads * head_dim;
    turn_head<kDims>(key + from, norm, has_norm, angles + ulong(at - first) * 2 * params->n_pairs,
                     *params, reinterpret_cast<half*>(to_key), lane);
    for (uint d = lane; d < head_dim; d += 32) to_value[d] = as_type<ushort>(half(value[from + d]));
  }
};

template <uint kDims, uint kHeads>
__device__ void rope_attention_rows(const float* query, const float* key, const float* value,
                                    const float* angles, ushort* key_cache, ushort* value_cache,
                                    const float* query_norm, const float* key_norm, float* out,
                                    const PassRange& pass, float* workspace,
                                    const RopeAttentionParams& params, const Row* rows,
                                    const uint* pages, const Span* spans, uchar* shared,
                                    uint3 group, uint3 groups, uint thread_index) {
  const uint index = pass.first_row + group.z;
  const Row own = rows[index];
  const HeadChunk chunk = chunk_of(group.y, params.n_heads, params.n_kv_heads);
  const AttendedRow row = attended_row(params, own, chunk, index, group.z,
                                       group.z * groups.y + group.y, workspace, out);
  // The first block of a kv head writes the row's key and value.
  const uint per_kv_head = params.n_heads / params.n_kv_heads;
  const bool writes = group.x == 0 && chunk.first_head == chunk.kv_head * per_kv_head &&
                      (own.flags & kRowActive) != 0;
  const bool attends = group.x < min(row.n_units(), kRowSplits);
  const uint head_dim = params.head_dim, lane = thread_index % 32;
  if (row.n_units() == 0 && group.x == 0) {
    inputs_ready();  // `out` may still be read
    write_zeros(row, thread_index);
  }
  if (!attends && !writes) return;

  // One row is a span of its own. Rows of a span are consecutive, and so are positions.
  const uint first_row = pass.n_rows == 1 ? index : spans[own.span].first_row;
  const uint first_own = pass.n_rows == 1 ? own.position : rows[first_row].position;
  const RowMemory<kHeads> memory = row_memory<kHeads>(shared, head_dim);
  const CachedUnits cache =
      units_of(params, key_cache, value_cache, pages, own.sequence, chunk.kv_head);
  const SplitsOfBlock splits = SplitsOfBlock{group.x, groups.x};
  // Rows, pages, and keys and values before the span's are older than the launch before this one.
  if (attends) begin_row(memory, row, cache, first_own, splits, thread_index);
  inputs_ready();
  const float* norm_of_query = query;  // as good as any where there is none
  const float* norm_of_key = query;
  if (kIsBound6) norm_of_query = query_norm;
  if (kIsBound7) norm_of_key = key_norm;
  const float* own_angles = angles + ulong(index) * 2 * params.n_pairs;
  const ulong of_value = (ulong(index) * params.n_kv_heads + chunk.kv_head) * head_dim;
  for (uint i = thread_index; i < head_dim; i += kRowThreads)
    memory.own_value[i] = as_type<ushort>(half(value[of_value + i]));
  for (uint item = thread_index / 32; item <= kHeads; item += kRowWarps) {
    if (item == kHeads) {
      turn_head<kDims>(key + of_value, norm_of_key, kIsBound7, own_angles, params,
                       reinterpret_cast<half*>(memory.own_key), lane);
    } else if (item < chunk.n_queries) {
      float* turned = memory.scores + item * memory.score_stride;
      turn_head<kDims>(query + (ulong(index) * params.n_heads + chunk.first_head + item) * head_dim,
                       norm_of_query, kIsBound6, own_angles, params, turned, lane);
      __syncwarp();
      split_query(memory, turned, item, head_dim, lane);
    } else {
      split_query(memory, nullptr, item, head_dim, lane);
    }
  }
  __syncthreads();
  if (writes) {
    const uint page = page_of(pages, params.page_table_base, params.page_table_stride, own.sequence,
                              own.position);
    const ulong to =
        kv_offset(page, params.n_kv_heads, chunk.kv_head, own.position % kPagePositions, head_dim);
    for (uint i = thread_index; i < head_dim; i += kRowThreads) {
      key_cache[to + i] = memory.own_key[i];
      value_cache[to + i] = memory.own_value[i];
    }
  }
  if (!attends) return;
  const ulong of_span = (ulong(first_row) * params.n_kv_heads + chunk.kv_head) * head_dim;
  const OwnRows<kDims> own_rows = OwnRows<kDims>{
      first_own,        own.position,  memory.own_key,
      memory.own_value, key + of_span, value + of_span,
      norm_of_key,      kIsBound7,     angles + ulong(first_row) * 2 * params.n_pairs,
      &params};
  attend_row<kDims>(memory, row, cache, own_rows, splits, thread_index);
}

// For heads of up to `dims` dimensions and `heads` query heads of a block; a multiprocessor has registers for so many blocks.
#define AKUNU_ROWS(dims, heads, blocks)                                                            \
  AKUNU_KERNEL(attention_rows_d##dims##_q##heads, __launch_bounds__(kRowThreads, blocks)) {        \
    take_constants(launch);                                                                        \
    inputs_ready();                                                                                \
    attention_rows<dims, heads>(launch.slot(0), launch.slot(1), launch.slot(2), launch.slot(3),    \
                                launch.pass(), launch.slot(24), launch.parameters(),               \
                                launch.slot(26), launch.slot(27), launch.shared(0), block_index(), \
                                grid_size(), threadIdx.x);                                         \
  }                                                                                                \
  AKUNU_KERNEL(rope_attention_rows_d##dims##_q##heads, __launch_bounds__(kRowThreads, blocks)) {   \
    take_constants(launch);                                                                        \
    rope_attention_rows<dims, heads>(                                                              \
        launch.slot(0), launch.slot(1), launch.slot(2), launch.slot(3), launch.slot(4),            \
        launch.slot(5), launch.slot(6), launch.slot(7), launch.slot(8), launch.pass(),             \
        launch.slot(24), launch.parameters(), launch.slot(26), launch.slot(27), launch.slot(30),   \
        launch.shared(0), block_index(), grid_size(), threadIdx.x);                                \
  }
AKUNU_ROWS(128, 4, 5)
AKUNU_ROWS(128, 8, 4)
AKUNU_ROWS(256, 4, 2)
AKUNU_ROWS(256, 8, 2)

}  // namespace gpu
