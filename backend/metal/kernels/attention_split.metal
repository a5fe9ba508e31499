// attention and rope_attention, split over the positions; see attention_split.h
#include "metal/kernels/attention_split.h"

// Grid: (splits / n_simdgroups, kv heads * chunks of query heads, rows). `memory`: the queries,
// then 32 scores for each of kChunk heads and SIMD-group.
template <class Keys, class Values, uint kDims>
[[kernel]] void attention(
    device const float* query [[buffer(0)]], device const Keys* key_cache [[buffer(1)]],
    device const Values* value_cache [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    device float* workspace [[buffer(24)]], constant AttentionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    threadgroup float* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint row = pass.first_row + group.z;
  const Visible seen = visible_to(rows[row], params.window);
  const uint first_split = group.x * n_simdgroups;
  if (!has_work(seen, first_split, n_simdgroups)) return;
  const HeadChunk chunk = chunk_of(group.y, params.n_heads, params.n_kv_heads);
  const uint head_dim = params.head_dim, stride = (head_dim + 3) / 4 * 4;
  device const float* heads = query + (ulong(row) * params.n_heads + chunk.first_head) * head_dim;
  for (uint i = thread_index; i < chunk.n_queries * stride; i += 32 * n_simdgroups)
    memory[i] = i % stride < head_dim ? heads[i / stride * head_dim + i % stride] : 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (units_before(seen, first_split + simdgroup) >= seen.n_units) return;

  const Fresh fresh = Fresh{kNone, memory, query, 0};
  attend_split<Keys, Values, kDims>(shape_of(params), seen, first_split + simdgroup, rows[row].sequence,
                             chunk.kv_head, chunk.first_head, chunk.n_queries, memory, stride,
                             memory + kChunk * stride + simdgroup * kChunk * kBlockPositions, fresh,
                             key_cache, value_cache, pages, group.z, workspace, lane);
}

// The same with the query turned on the way, and the span's own keys. `memory`: the queries, the
// scores, and a key for each row of the span that this row sees.
template <class Cache, uint kDims>
[[kernel]] void rope_attention(
    device const float* query [[buffer(0)]], device const float* key [[buffer(1)]],
    device const float* value [[buffer(2)]], device const float* angles [[buffer(3)]],
    device Cache* key_cache [[buffer(4)]], device Cache* value_cache [[buffer(5)]],
    device const float* query_norm [[buffer(6), function_constant(kIsBound6)]],
    device const float* key_norm [[buffer(7), function_constant(kIsBound7)]],
    constant PassRange& pass [[buffer(23)]], device float* workspace [[buffer(24)]],
    constant RopeAttentionParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], device const Span* spans [[buffer(30)]],
    threadgroup float* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint row = pass.first_row + group.z;
  const Visible seen = visible_to(rows[row], params.window);
  const uint first_split = group.x * n_simdgroups;
  // The first threadgroup of a kv head writes the row's key and value.
  const HeadChunk chunk = chunk_of(group.y, params.n_heads, params.n_kv_heads);
  const uint per_kv_head = params.n_heads / params.n_kv_heads;
  const bool writes = group.x == 0 && chunk.first_head == chunk.kv_head * per_kv_head &&
                      (rows[row].flags & kRowActive) != 0;
  const bool attends = has_work(seen, first_split, n_simdgroups);
  if (!attends && !writes) return;

  const uint head_dim = params.head_dim, stride = (head_dim + 3) / 4 * 4;
  const uint sequence = rows[row].sequence, place = rows[row].position;
  const uint first_row = spans[rows[row].span].first_row;
  const uint n_fresh = row - first_row + 1;  // rows of a span are consecutive, and so are positions
  threadgroup float* scores = memory + kChunk * stride;
  threadgroup float* fresh_keys = scores + n_simdgroups * kChunk * kBlockPositions;
  device const float* norm_of_query = query;  // as good as any where there is none
  device const float* norm_of_key = query;
  if (kIsBound6) norm_of_query = query_norm;
  if (kIsBound7) norm_of_key = key_norm;
  turn_heads<Cache>(query, key, angles, norm_of_query, kIsBound6, norm_of_key, kIsBound7, params,
                    chunk, row, first_row, stride, memory, fresh_keys, simdgroup, n_simdgroups,
                    lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  if (writes)
    write_row<Cache>(fresh_keys + (n_fresh - 1) * stride, value, key_cache, value_cache, pages,
                     params, chunk.kv_head, row, sequence, place, 32 * simdgroup + lane,
                     32 * n_simdgroups);
  if (units_before(seen, first_split + simdgroup) >= seen.n_units) return;

  const Fresh fresh =
      Fresh{rows[first_row].position, fresh_keys,
            value + (ulong(first_row) * params.n_kv_heads + chunk.kv_head) * head_dim,
            ulong(params.n_kv_heads) * head_dim};
  attend_split<Cache, Cache, kDims>(shape_of(params), seen, first_split + simdgroup, sequence,
                             chunk.kv_head, chunk.first_head, chunk.n_queries, memory, stride,
                             scores + simdgroup * kChunk * kBlockPositions, fresh, key_cache,
                             value_cache, pages, group.z, workspace, lane);
}

// A threadgroup per (head, row). rope_attention's result lies at another slot, and its parameters begin otherwise.
[[kernel]] void attention_combine(
    device float* out [[buffer(3)]],
    device const float* sinks [[buffer(4), function_constant(kIsBound4)]],
    constant PassRange& pass [[buffer(23)]], device const float* workspace [[buffer(24)]],
    constant AttentionParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint row = pass.first_row + group.y;
  float sink = -infinity();
  if (kIsBound4) sink = sinks[group.x];
  combine(params.n_heads, params.head_dim, visible_to(rows[row], params.window), workspace, sink,
          out, group.y, row, group.x, thread_index, 32 * n_simdgroups, lane);
}

[[kernel]] void rope_attention_combine(
    device float* out [[buffer(8)]], constant PassRange& pass [[buffer(23)]],
    device const float* workspace [[buffer(24)]],
    constant RopeAttentionParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint row = pass.first_row + group.y;
  combine(params.n_heads, params.head_dim, visible_to(rows[row], params.window), workspace,
          -infinity(), out, group.y, row, group.x, thread_index, 32 * n_simdgroups, lane);
}

#define AKUNU_ATTENTION(name, Keys, Values, dims) \
  template [[host_name("attention_" #name "_d" #dims)]] [[kernel]] decltype( \
      attention<Keys, Values, dims>) attention<Keys, Values, dims>;
#define AKUNU_ROPE_ATTENTION(name, Cache, dims) \
  template [[host_name("rope_attention_" #name "_d" #dims)]] [[kernel]] decltype( \
      rope_attention<Cache, dims>) rope_attention<Cache, dims>;
AKUNU_ATTENTION(f16, half, half, 2)
AKUNU_ATTENTION(f16, half, half, 4)
AKUNU_ATTENTION(f16, half, half, 8)
AKUNU_ATTENTION(f16, half, half, 16)
AKUNU_ATTENTION(f32, float, float, 2)
AKUNU_ATTENTION(f32, float, float, 4)
AKUNU_ATTENTION(f32, float, float, 8)
AKUNU_ATTENTION(f32, float, float, 16)
AKUNU_ATTENTION(q8_0, CacheQ8_0, CacheQ8_0, 2)
AKUNU_ATTENTION(q8_0, CacheQ8_0, CacheQ8_0, 4)
AKUNU_ATTENTION(q8_0, CacheQ8_0, CacheQ8_0, 8)
AKUNU_ATTENTION(q8_0, CacheQ8_0, CacheQ8_0, 16)
AKUNU_ATTENTION(q4_0, CacheQ8_0, CacheQ4_0, 2)
AKUNU_ATTENTION(q4_0, CacheQ8_0, CacheQ4_0, 4)
AKUNU_ATTENTION(q4_0, CacheQ8_0, CacheQ4_0, 8)
AKUNU_ATTENTION(q4_0, CacheQ8_0, CacheQ4_0, 16)
AKUNU_ROPE_ATTENTION(f16, half, 2)
AKUNU_ROPE_ATTENTION(f16, half, 4)
AKUNU_ROPE_ATTENTION(f16, half, 8)
AKUNU_ROPE_ATTENTION(f16, half, 16)
AKUNU_ROPE_ATTENTION(f32, float, 2)
AKUNU_ROPE_ATTENTION(f32, float, 4)
AKUNU_ROPE_ATTENTION(f32, float, 8)
AKUNU_ROPE_ATTENTION(f32, float, 16)
