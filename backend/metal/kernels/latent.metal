// Multi-head latent attention: latent_write, latent_query, latent_attention and latent_value
// (docs/kernels.md). All activations are float32. The order of every sum is the row's own.
// Floor: the cached rows and the weights once; heads read the rows out of the cache again.
#include "metal/kernels/functions.h"
#include "metal/kernels/norm.h"

inline float number_of(float v) { return v; }
inline float number_of(half v) { return float(v); }
inline float number_of(ushort v) { return as_type<float>(uint(v) << 16); }  // bfloat16

// A SIMD-group per row, for which a row that is not active writes nothing. Grid: (1, rows).
template <class Cache>
[[kernel]] void latent_write(
    device const float* latent [[buffer(0)]], device const float* norm [[buffer(1)]],
    device const float* angles [[buffer(2), function_constant(kIsBound2)]],
    device Cache* cache [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]], constant LatentWriteParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    uint3 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const uint row = pass.first_row + group.y;
  if ((rows[row].flags & kRowActive) == 0) return;
  const uint rank = params.rank, n_pairs = params.n_pairs, width = rank + 2 * n_pairs;
  device const float* own = latent + ulong(row) * width;
  const uint place = rows[row].position;
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, rows[row].sequence, place);
  device Cache* to = cache + kv_offset(page, 1, 0, place % kPagePositions, width);
  const Head normed = head_of(own, norm, true, rank, params.epsilon, lane);
  for (uint i = lane; i < rank; i += 32) to[i] = Cache(head_value(normed, i));
  const Head turning = Head{own + rank, own, false, 1.0f};
  for (uint i = lane; i < n_pairs; i += 32) {
    const uint2 pair = pair_of(i, n_pairs, params.style);
    float2 turned = float2(head_value(turning, pair.x), head_value(turning, pair.y));
    if (kIsBound2) turned = rotated_pair(turning, angles + ulong(row) * 2 * n_pairs, i, pair);
    to[rank + pair.x] = Cache(turned.x);
    to[rank + pair.y] = Cache(turned.y);
  }
}

#define AKUNU_LATENT_WRITE(name, Cache) \
  template [[host_name(                 \
      "latent_write_" #name)]] [[kernel]] decltype(latent_write<Cache>) latent_write<Cache>;
AKUNU_LATENT_WRITE(f16, half)
AKUNU_LATENT_WRITE(f32, float)

// A thread per number of the result. Grid: (n_heads * (rank + 2 n_pairs) / threads, rows).
template <class Number>
[[kernel]] void latent_query(device const float* query [[buffer(0)]],
                             device const Number* weight [[buffer(1)]],
                             device const float* angles
                             [[buffer(2), function_constant(kIsBound2)]],
                             device float* out [[buffer(3)]],
                             constant PassRange& pass [[buffer(23)]],
                             constant LatentQueryParams& params [[buffer(25)]],
                             uint3 position [[thread_position_in_grid]]) {
  const uint rank = params.rank, n_pairs = params.n_pairs, n_plain = params.n_plain;
  const uint width = rank + 2 * n_pairs;
  if (position.x >= params.n_heads * width) return;
  const uint head = position.x / width, i = position.x % width, row = pass.first_row + position.y;
  device const float* own = query + (ulong(row) * params.n_heads + head) * (n_plain + 2 * n_pairs);
  device float* to = out + ulong(row) * params.n_heads * width + position.x;
  if (i < rank) {
    const ulong first = ulong(head) * params.head_rows;
    float sum = 0.0f;
    if (params.is_transposed != 0) {
      device const Number* w = weight + (first + i) * n_plain;
      for (uint j = 0; j < n_plain; ++j) sum = fma(number_of(w[j]), own[j], sum);
    } else {
      device const Number* w = weight + first * rank + i;
      for (uint j = 0; j < n_plain; ++j) sum = fma(number_of(w[ulong(j) * rank]), own[j], sum);
    }
    *to = sum;
    return;
  }
  const uint d = i - rank;
  const uint which = params.style == kRopeHalves ? d % n_pairs : d / 2;
  const uint2 pair = pair_of(which, n_pairs, params.style);
  const Head turning = Head{own + n_plain, own, false, 1.0f};
  float2 turned = float2(head_value(turning, pair.x), head_value(turning, pair.y));
  if (kIsBound2) turned = rotated_pair(turning, angles + ulong(row) * 2 * n_pairs, which, pair);
  *to = d == pair.x ? turned.x : turned.y;
}

// A SIMD-group per number of the result. Grid: (n_heads * value_dim / n_simdgroups, rows).
template <class Number>
[[kernel]] void latent_value(
    device const float* attended [[buffer(0)]], device const Number* weight [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant LatentValueParams& params [[buffer(25)]], uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint at = group.x * n_simdgroups + simdgroup, n = params.n_heads * params.value_dim;
  if (at >= n) return;
  const uint head = at / params.value_dim, rank = params.rank, row = pass.first_row + group.y;
  device const float* own = attended + (ulong(row) * params.n_heads + head) * rank;
  device const Number* w =
      weight + (ulong(head) * params.head_rows + params.first_row + at % params.value_dim) * rank;
  float sum = 0.0f;
  for (uint i = lane; i < rank; i += 32) sum = fma(number_of(w[i]), own[i], sum);
  sum = simd_sum(sum);
  if (lane == 0) out[ulong(row) * n + at] = sum;
}

#define AKUNU_LATENT_WEIGHT(name, Number)                                                      \
  template [[host_name(                                                                        \
      "latent_query_" #name)]] [[kernel]] decltype(latent_query<Number>) latent_query<Number>; \
  template [[host_name(                                                                        \
      "latent_value_" #name)]] [[kernel]] decltype(latent_value<Number>) latent_value<Number>;
AKUNU_LATENT_WEIGHT(f32, float)
AKUNU_LATENT_WEIGHT(f16, half)
AKUNU_LATENT_WEIGHT(bf16, ushort)

constant constexpr uint kMostValueParts = 16;  // numbers of a value per lane: values of up to 512

// A SIMD-group per row and head. Positions come in groups of 32, a lane each for the scores; for the
// values, a lane has numbers 32 apart. Grid: (heads, rows).
template <class Cache>
[[kernel]] void latent_attention(
    device const float* query [[buffer(0)]], device const Cache* cache [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant LatentAttentionParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint width = params.head_dim, n_values = params.value_dim;
  const uint head = group.x, row = pass.first_row + group.y;
  const uint kv_head = head / (params.n_heads / params.n_kv_heads);
  const uint sequence = rows[row].sequence, n_seen = rows[row].kv_length;
  device const float* own = query + (ulong(row) * params.n_heads + head) * width;
  float sums[kMostValueParts];
  for (uint d = 0; d < kMostValueParts; ++d) sums[d] = 0.0f;
  float largest = -infinity(), total = 0.0f;
  for (uint first = 0; first < n_seen; first += 32) {
    const uint page =
        page_of(pages, params.page_table_base, params.page_table_stride, sequence, first);
    device const Cache* kept =
        cache + kv_offset(page, params.n_kv_heads, kv_head, first % kPagePositions, width);
    const uint n = min(32u, n_seen - first);
    float score = -infinity();
    if (lane < n) {
      device const Cache* key = kept + ulong(lane) * width;
      float dot = 0.0f;
      for (uint i = 0; i < width; ++i) dot = fma(own[i], float(key[i]), dot);
      score = dot * params.scale;
    }
    const float top = max(largest, simd_max(score));
    const float keep = exp_of(largest - top);
    const float weight = lane < n ? exp_of(score - top) : 0.0f;
    total = fma(total, keep, simd_sum(weight));
    largest = top;
    for (uint d = 0; d < kMostValueParts; ++d) sums[d] = sums[d] * keep;
    for (uint j = 0; j < n; ++j) {
      const float each = simd_shuffle(weight, ushort(j));
      device const Cache* value = kept + ulong(j) * width;
      for (uint d = 0; d < kMostValueParts; ++d)
        if (lane + 32 * d < n_values) sums[d] = fma(each, float(value[lane + 32 * d]), sums[d]);
    }
  }
  const float factor = 1.0f / total;
  for (uint d = 0; d < kMostValueParts; ++d)
    if (lane + 32 * d < n_values)
      out[(ulong(row) * params.n_heads + head) * n_values + lane + 32 * d] = sums[d] * factor;
}

#define AKUNU_LATENT_ATTENTION(name, Cache)                                                      \
  template [[host_name("latent_attention_" #name)]] [[kernel]] decltype(latent_attention<Cache>) \
      latent_attention<Cache>;
AKUNU_LATENT_ATTENTION(f16, half)
AKUNU_LATENT_ATTENTION(f32, float)
