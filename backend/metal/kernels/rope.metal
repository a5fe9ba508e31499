// rope_angles, rope, kv_write, kv_rotate, and rope_kv_write with or without the per-head norms: a SIMD-group
// per head, a lane per pair. Floor: the operands' bytes; latency decides.
#include "metal/kernels/cache.h"
#include "metal/kernels/functions.h"
#include "metal/kernels/norm.h"

// angles[r, 2 i] = scale * cos a, angles[r, 2 i + 1] = scale * sin a, where
//   a = (position + rope_offsets[axis of pair i]) * inverse_frequencies[i]
//   scale = factor * (1 + growth * log(1 + position / growth_length))
// Positions come from the rows, so a chained row's angles move on with it.
[[kernel]] void rope_angles(device const float* inverse_frequencies [[buffer(0)]],
                            device float* angles [[buffer(1)]],
                            constant PassRange& pass [[buffer(23)]],
                            constant RopeAnglesParams& params [[buffer(25)]],
                            device const Row* rows [[buffer(26)]],
                            uint3 position [[thread_position_in_grid]]) {
  if (position.x >= params.n_pairs) return;
  const uint row = pass.first_row + position.y;
  const uint pair = position.x;
  const uint axis = pair < kMostPairsWithAxes ? params.axes[pair / 16] >> (2 * (pair % 16)) & 3u : 0u;
  const float at = float(int(rows[row].position) + rows[row].rope_offsets[axis]);
  const float2 turned = cos_sin_of(at * inverse_frequencies[pair]);
  float factor = 1;
  if (params.growth != 0)
    factor += params.growth * log_of(1 + float(rows[row].position / params.growth_length));
  factor = factor * params.factor;
  device float* to = angles + ulong(row) * 2 * params.n_pairs + 2 * position.x;
  to[0] = turned.x * factor;
  to[1] = turned.y * factor;
}

// Turns the pairs of a head in place: a lane reads both dimensions of a pair before it writes them.
inline void turn_in_place(Head source, device float* head, device const float* angles, uint n_pairs,
                          uint style, uint lane) {
  for (uint i = lane; i < n_pairs; i += 32) {
    const uint2 pair = pair_of(i, n_pairs, style);
    const float2 turned = rotated_pair(source, angles, i, pair);
    head[pair.x] = turned.x;
    head[pair.y] = turned.y;
  }
}

// Grid: (heads / n_simdgroups, rows).
[[kernel]] void rope(device float* data [[buffer(0)]], device const float* angles [[buffer(1)]],
                     constant PassRange& pass [[buffer(23)]],
                     constant RopeParams& params [[buffer(25)]],
                     uint3 group [[threadgroup_position_in_grid]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]],
                     uint n_simdgroups [[simdgroups_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]]) {
  const uint h = group.x * n_simdgroups + simdgroup;
  if (h >= params.n_heads) return;
  const uint row = pass.first_row + group.y;
  device float* head = data + (ulong(row) * params.n_heads + h) * params.head_dim;
  device const float* row_angles = angles + ulong(row) * 2 * params.n_pairs;
  turn_in_place(Head{head, head, false, 1.0f}, head, row_angles, params.n_pairs, params.style,
                lane);
}

// Grid: (n_kv_heads * head_dim / 256, rows). A row that is not active writes nothing. Beside blocks heads are
// whole blocks, and a SIMD-group has one of them.
template <class Keys, class Values>
[[kernel]] void kv_write(
    device const float* key [[buffer(0)]], device const float* value [[buffer(1)]],
    device Keys* key_cache [[buffer(2)]], device Values* value_cache [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]], constant KvWriteParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    uint3 position [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const uint width = params.n_kv_heads * params.head_dim;
  const uint row = pass.first_row + position.y;
  if (position.x >= width || (rows[row].flags & kRowActive) == 0) return;
  const uint place = rows[row].position;
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, rows[row].sequence, place);
  const ulong to = kv_offset(page, params.n_kv_heads, position.x / params.head_dim,
                             place % kPagePositions, params.head_dim);
  const uint i = position.x % params.head_dim;
  const ulong from = ulong(row) * width + position.x;
  store_cached(cached_at(key_cache, to), i, key[from], lane);
  store_cached(cached_at(value_cache, to), i, value[from], lane);
}

// A key goes to the cache, normed and turned: numbers pair by pair, blocks a number per lane.
template <class Number>
inline void store_turned(device Number* head, Head source, device const float* angles,
                         uint head_dim, uint n_pairs, uint style, uint lane) {
  for (uint i = lane; i < n_pairs; i += 32) {
    const uint2 pair = pair_of(i, n_pairs, style);
    const float2 turned = rotated_pair(source, angles, i, pair);
    head[pair.x] = Number(turned.x);
    head[pair.y] = Number(turned.y);
  }
  for (uint i = 2 * n_pairs + lane; i < head_dim; i += 32) head[i] = Number(head_value(source, i));
}
inline void store_turned(device CacheQ8_0* head, Head source, device const float* angles,
                         uint head_dim, uint n_pairs, uint style, uint lane) {
  for (uint i = lane; i < head_dim; i += 32) {
    float x;
    if (i < 2 * n_pairs) {
      const uint index = style == kRopeHalves ? i % n_pairs : i / 2;
      const uint2 pair = pair_of(index, n_pairs, style);
      const float2 turned = rotated_pair(source, angles, index, pair);
      x = i == pair.x ? turned.x : turned.y;
    } else {
      x = head_value(source, i);
    }
    store_cached(head, i, x, lane);
  }
}

// Heads of the query first, turned in place, then kv heads, written to the cache; `key` stays as it
// is. Grid: ((n_heads + n_kv_heads) / n_simdgroups, rows).
template <class Keys, class Values>
[[kernel]] void rope_kv_write(
    device float* query [[buffer(0)]], device const float* key [[buffer(1)]],
    device const float* value [[buffer(2)]], device const float* angles [[buffer(3)]],
    device Keys* key_cache [[buffer(4)]], device Values* value_cache [[buffer(5)]],
    device const float* query_norm [[buffer(6), function_constant(kIsBound6)]],
    device const float* key_norm [[buffer(7), function_constant(kIsBound7)]],
    constant PassRange& pass [[buffer(23)]], constant RopeKvWriteParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    uint3 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint h = group.x * n_simdgroups + simdgroup;
  if (h >= params.n_heads + params.n_kv_heads) return;
  const uint row = pass.first_row + group.y;
  const uint head_dim = params.head_dim, n_pairs = params.n_pairs;
  device const float* row_angles = angles + ulong(row) * 2 * n_pairs;
  if (h < params.n_heads) {
    device float* head = query + (ulong(row) * params.n_heads + h) * head_dim;
    device const float* norm = head;  // as good as any where there is none
    if (kIsBound6) norm = query_norm;
    const Head source = head_of(head, norm, kIsBound6, head_dim, params.epsilon, lane);
    // In place: no lane turns a pair before every lane has squared what lies there.
    simdgroup_barrier(mem_flags::mem_device);
    turn_in_place(source, head, row_angles, n_pairs, params.style, lane);
    for (uint i = 2 * n_pairs + lane; i < head_dim; i += 32) head[i] = head_value(source, i);
    return;
  }
  if ((rows[row].flags & kRowActive) == 0) return;
  const uint kv_head = h - params.n_heads;
  const uint place = rows[row].position;
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, rows[row].sequence, place);
  const ulong to = kv_offset(page, params.n_kv_heads, kv_head, place % kPagePositions, head_dim);
  const ulong from = (ulong(row) * params.n_kv_heads + kv_head) * head_dim;
  device const float* norm = key;
  if (kIsBound7) norm = key_norm;
  const Head source = head_of(key + from, norm, kIsBound7, head_dim, params.epsilon, lane);
  store_turned(cached_at(key_cache, to), source, row_angles, head_dim, n_pairs, params.style, lane);
  device Values* values = cached_at(value_cache, to);
  for (uint i = lane; i < head_dim; i += 32) store_cached(values, i, value[from + i], lane);
}

// The pairs of a cached head turn. A lane reads both dimensions of a pair before it writes them.
template <class Number>
inline void turn_cached(device Number* head, device const float* turn, uint n_pairs, uint style,
                        uint lane) {
  for (uint i = lane; i < n_pairs; i += 32) {
    const uint2 pair = pair_of(i, n_pairs, style);
    const float a = float(head[pair.x]), b = float(head[pair.y]);
    const float cosine = turn[2 * i], sine = turn[2 * i + 1];
    head[pair.x] = Number(fma(a, cosine, -(b * sine)));
    head[pair.y] = Number(fma(b, cosine, a * sine));
  }
}
// All numbers are read before a block is written: those of a pair may lie in two.
inline void turn_cached(device CacheQ8_0* head, device const float* turn, uint n_pairs, uint style,
                        uint lane) {
  constexpr uint kMost = 16;  // blocks of a head: 512 dimensions
  const uint n_blocks = (2 * n_pairs + 31) / 32;
  float numbers[kMost];
#pragma unroll
  for (uint b = 0; b < kMost; ++b) {
    const uint i = 32 * b + lane;
    if (b >= n_blocks) continue;
    numbers[b] = cached_number(head, i);
    if (i >= 2 * n_pairs) continue;
    const uint index = style == kRopeHalves ? i % n_pairs : i / 2;
    const uint2 pair = pair_of(index, n_pairs, style);
    const bool is_first = i == pair.x;
    const float other = cached_number(head, is_first ? pair.y : pair.x);
    const float cosine = turn[2 * index], sine = turn[2 * index + 1];
    numbers[b] = is_first ? fma(numbers[b], cosine, -(other * sine))
                          : fma(numbers[b], cosine, other * sine);
  }
  simdgroup_barrier(mem_flags::mem_device);
#pragma unroll
  for (uint b = 0; b < kMost; ++b)
    if (b < n_blocks) store_cached(head, 32 * b + lane, numbers[b], lane);
}

// Pairs of cached keys, turned by the same angles in all rows. Grid: (n_kv_heads / n_simdgroups, rows). A row that is not active writes nothing.
template <class Cache>
[[kernel]] void kv_rotate(
    device const float* turn [[buffer(0)]], device Cache* key_cache [[buffer(1)]],
    constant PassRange& pass [[buffer(23)]], constant KvRotateParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    uint3 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint h = group.x * n_simdgroups + simdgroup;
  const uint row = pass.first_row + group.y;
  if (h >= params.n_kv_heads || (rows[row].flags & kRowActive) == 0) return;
  const uint place = rows[row].position;
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, rows[row].sequence, place);
  const ulong at = params.first_dim + kv_offset(page, params.n_kv_heads, h, place % kPagePositions,
                                                params.head_dim);
  turn_cached(cached_at(key_cache, at), turn, params.n_pairs, params.style, lane);
}

template [[host_name("kv_rotate_f16")]] [[kernel]] decltype(
    kv_rotate<half>) kv_rotate<half>;
template [[host_name("kv_rotate_f32")]] [[kernel]] decltype(
    kv_rotate<float>) kv_rotate<float>;
template [[host_name("kv_rotate_q8_0")]] [[kernel]] decltype(
    kv_rotate<CacheQ8_0>) kv_rotate<CacheQ8_0>;

#define AKUNU_KV_WRITE(name, Keys, Values) \
  template [[host_name("kv_write_" #name)]] [[kernel]] decltype( \
      kv_write<Keys, Values>) kv_write<Keys, Values>; \
  template [[host_name("rope_kv_write_" #name)]] [[kernel]] decltype( \
      rope_kv_write<Keys, Values>) rope_kv_write<Keys, Values>;
AKUNU_KV_WRITE(f16, half, half)
AKUNU_KV_WRITE(f32, float, float)
AKUNU_KV_WRITE(q8_0, CacheQ8_0, CacheQ8_0)
AKUNU_KV_WRITE(q4_0, CacheQ8_0, CacheQ4_0)
