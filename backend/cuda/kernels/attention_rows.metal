// attention and rope_attention of rows that generate, over a cache of halves, for heads that are a multiple of 16: the arithmetic is
// in kernels/rows_attention.h. A block of 128 threads takes splits of a row and kv head (metal/kernels/attention_split.h says which
// positions those are).
//
// rope_attention begins before query, key and value are there: with the keys and values of earlier rows. Keys and values of the
// row's span are taken out of the operands, rounded as the cache has them, never out of memory that another block writes.
#include "metal/kernels/attention_split.h"

// generate.py puts warpgroup.h and rows_attention.h in the place of this.
inline void attend_row() {}

// The positions of one sequence and kv head.
struct CachedUnits {
  device const ushort* key_cache;
  device const ushort* value_cache;
  device const uint* pages;
  uint sequence, n_kv_heads, kv_head, head_dim, page_table_base, page_table_stride;

  ulong offset(uint position) const {
    const uint page = page_of(pages, page_table_base, page_table_stride, sequence, position);
    return kv_offset(page, n_kv_heads, kv_head, position % kPagePositions, head_dim);
  }
  device const ushort* keys(uint position) const { return key_cache + offset(position); }
  device const ushort* values(uint position) const { return value_cache + offset(position); }
};
template <class Params>
inline CachedUnits units_of(constant Params& params, device const ushort* key_cache,
                            device const ushort* value_cache, device const uint* pages,
                            uint sequence, uint kv_head) {
  return CachedUnits{key_cache,       value_cache,     pages,
                     sequence,        params.n_kv_heads, kv_head,
                     params.head_dim, params.page_table_base, params.page_table_stride};
}

template <class Params>
inline AttendedRow attended_row(constant Params& params, Row row, HeadChunk chunk, uint index,
                                uint local_row, uint place, device float* workspace,
                                device float* out) {
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
  void place(uint, threadgroup ushort*, threadgroup ushort*, uint) const {}
};

// Grid: (blocks that share the splits of a row, kv heads * chunks of query heads, rows).
template <uint kDims, uint kHeads>
[[kernel]] void attention_rows(
    device const float* query [[buffer(0)]], device const ushort* key_cache [[buffer(1)]],
    device const ushort* value_cache [[buffer(2)]], device float* out [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]], device float* workspace [[buffer(24)]],
    constant AttentionParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], threadgroup uchar* shared [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
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
  device const float* heads =
      query + (ulong(index) * params.n_heads + chunk.first_head) * row.head_dim;
  for (uint head = thread_index / 32; head < kHeads; head += kRowWarps)
    split_query(memory, head < chunk.n_queries ? heads + head * row.head_dim : nullptr, head,
                row.head_dim, thread_index % 32);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  attend_row<kDims>(memory, row, cache, no_own, splits, thread_index);
}

// A head, normed and turned, by a SIMD-group, as turn_heads of attention_split.h does it; all loads are under way at
// once. The result is rounded to Number.
template <uint kDims, class Number>
inline void turn_head(device const float* data, device const float* norm, bool has_norm,
                      device const float* angles, constant RopeAttentionParams& params,
                      threadgroup Number* to, uint lane) {
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
  threadgroup const ushort* own_key;
  threadgroup const ushort* own_value;
  device const float* key;  // of this kv head, at the row of position `first`
  device const float* value;
  device const float* norm;
  bool has_norm;
  device const float* angles;
  constant RopeAttentionParams* params;

  void place(uint at, threadgroup ushort* to_key, threadgroup ushort* to_value, uint lane) const {
    const uint head_dim = params->head_dim;
    if (at == position) {
      for (uint d = lane; d < head_dim; d += 32) {
        to_key[d] = own_key[d];
        to_value[d] = own_value[d];
      }
      return;
    }
    const ulong from = ulong(at - first) * params->n_kv_heads * head_dim;
    turn_head<kDims>(key + from, norm, has_norm, angles + ulong(at - first) * 2 * params->n_pairs, *params,
              reinterpret_cast<threadgroup half*>(to_key), lane);
    for (uint d = lane; d < head_dim; d += 32)
      to_value[d] = as_type<ushort>(half(value[from + d]));
  }
};

template <uint kDims, uint kHeads>
[[kernel]] void rope_attention_rows(
    device const float* query [[buffer(0)]], device const float* key [[buffer(1)]],
    device const float* value [[buffer(2)]], device const float* angles [[buffer(3)]],
    device ushort* key_cache [[buffer(4)]], device ushort* value_cache [[buffer(5)]],
    device const float* query_norm [[buffer(6), function_constant(kIsBound6)]],
    device const float* key_norm [[buffer(7), function_constant(kIsBound7)]],
    device float* out [[buffer(8)]], constant PassRange& pass [[buffer(23)]],
    device float* workspace [[buffer(24)]], constant RopeAttentionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    device const Span* spans [[buffer(30)]], threadgroup uchar* shared [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
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
  device const float* norm_of_query = query;  // as good as any where there is none
  device const float* norm_of_key = query;
  if (kIsBound6) norm_of_query = query_norm;
  if (kIsBound7) norm_of_key = key_norm;
  device const float* own_angles = angles + ulong(index) * 2 * params.n_pairs;
  const ulong of_value = (ulong(index) * params.n_kv_heads + chunk.kv_head) * head_dim;
  for (uint i = thread_index; i < head_dim; i += kRowThreads)
    memory.own_value[i] = as_type<ushort>(half(value[of_value + i]));
  for (uint item = thread_index / 32; item <= kHeads; item += kRowWarps) {
    if (item == kHeads) {
      turn_head<kDims>(key + of_value, norm_of_key, kIsBound7, own_angles, params,
                reinterpret_cast<threadgroup half*>(memory.own_key), lane);
    } else if (item < chunk.n_queries) {
      threadgroup float* turned = memory.scores + item * memory.score_stride;
      turn_head<kDims>(query + (ulong(index) * params.n_heads + chunk.first_head + item) * head_dim,
                norm_of_query, kIsBound6, own_angles, params, turned, lane);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      split_query(memory, turned, item, head_dim, lane);
    } else {
      split_query(memory, nullptr, item, head_dim, lane);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (writes) {
    const uint page = page_of(pages, params.page_table_base, params.page_table_stride, own.sequence,
                              own.position);
    const ulong to = kv_offset(page, params.n_kv_heads, chunk.kv_head,
                               own.position % kPagePositions, head_dim);
    for (uint i = thread_index; i < head_dim; i += kRowThreads) {
      key_cache[to + i] = memory.own_key[i];
      value_cache[to + i] = memory.own_value[i];
    }
  }
  if (!attends) return;
  const ulong of_span = (ulong(first_row) * params.n_kv_heads + chunk.kv_head) * head_dim;
  const OwnRows<kDims> own_rows = OwnRows<kDims>{first_own,
                                   own.position,
                                   memory.own_key,
                                   memory.own_value,
                                   key + of_span,
                                   value + of_span,
                                   norm_of_key,
                                   kIsBound7,
                                   angles + ulong(first_row) * 2 * params.n_pairs,
                                   &params};
  attend_row<kDims>(memory, row, cache, own_rows, splits, thread_index);
}

#define AKUNU_ROWS(dims, heads)                                                                  \
  template [[host_name("attention_rows_d" #dims "_q" #heads)]] [[kernel]] decltype(               \
      attention_rows<dims, heads>) attention_rows<dims, heads>;                                   \
  template [[host_name("rope_attention_rows_d" #dims "_q" #heads)]] [[kernel]] decltype(          \
      rope_attention_rows<dims, heads>) rope_attention_rows<dims, heads>;
AKUNU_ROWS(128, 4)
AKUNU_ROWS(128, 8)
AKUNU_ROWS(256, 4)
AKUNU_ROWS(256, 8)
