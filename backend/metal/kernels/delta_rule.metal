// gated_delta_rule (docs/kernels.md). All activations are float32. Floor: the state once in and once out; of a prompt
// three `fma`s and a product per number of state and row.
#include "metal/kernels/common.h"
#include "metal/kernels/functions.h"

// A SIMD-group per row of a head's state, which its lanes hold, 32 apart, while the rows of a span go by.
// Grid: (n_value_heads * value_dim / n_simdgroups, spans).
[[kernel]] void gated_delta_rule(
    device const float* input [[buffer(0)]], device const float* a [[buffer(1)]],
    device const float* b [[buffer(2)]], device const float* rate [[buffer(3)]],
    device const float* bias [[buffer(4)]], device float* states [[buffer(5)]],
    device float* out [[buffer(6)]], constant PassRange& pass [[buffer(23)]],
    constant GatedDeltaRuleParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], device const Span* spans [[buffer(30)]],
    uint3 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint kPerLane = kMaxStateDim / 32;
  const uint key_dim = params.key_dim, n_heads = params.n_value_heads;
  const uint values = n_heads * params.value_dim, keys = params.n_key_heads * key_dim;
  const uint place = group.x * n_simdgroups + simdgroup;
  if (place >= values) return;
  const uint head = place / params.value_dim;
  const uint key_head =
      params.is_tiled != 0 ? head % params.n_key_heads : head / (n_heads / params.n_key_heads);
  device const Span& span = spans[pass.first_span + group.y];
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, span.sequence, 0);
  const ulong half_size = ulong(values) * key_dim;
  device float* kept = states + 2 * ulong(page) * half_size + ulong(place) * key_dim;
  const ulong stride = 2 * ulong(keys) + values;
  const float scale = 1.0f / sqrt(float(key_dim));
  const bool per_channel = params.per_channel != 0;
  const uint of_head = per_channel ? key_dim : 1;  // numbers of a and of bias

  float state[kPerLane], key[kPerLane], query[kPerLane];
  const uint end = span.first_row + span.n_rows, first_position = rows[span.first_row].position;
  device const float* before = kept + first_position % 2 * half_size;
  for (uint i = 0; i < kPerLane; ++i) {
    const uint n = 32 * i + lane;
    state[i] = first_position == 0 || n >= key_dim ? 0.0f : before[n];
  }
  for (uint r = span.first_row; r < end; ++r) {
    if ((rows[r].flags & kRowActive) == 0) {
      if (lane == 0) out[ulong(r) * values + place] = 0.0f;
      continue;
    }
    device const float* own = input + r * stride;
    device const float* fading = a + (ulong(r) * n_heads + head) * of_head;
    device const float* usual = bias + ulong(head) * of_head;
    float keep = 0.0f;
    if (!per_channel) keep = exp_of(rate[head] * softplus(fading[0] + usual[0]));
    float seen = 0.0f, key_square = 0.0f, query_square = 0.0f;
    for (uint i = 0; i < kPerLane; ++i) {
      const uint n = 32 * i + lane;
      if (n >= key_dim) break;
      query[i] = own[ulong(key_head) * key_dim + n];
      key[i] = own[ulong(keys) + ulong(key_head) * key_dim + n];
      if (per_channel) keep = exp_of(rate[head] * softplus(fading[n] + usual[n]));
      state[i] = keep * state[i];
      seen = fma(state[i], key[i], seen);
      key_square = fma(key[i], key[i], key_square);
      query_square = fma(query[i], query[i], query_square);
    }
    const float key_factor = 1.0f / sqrt(simd_sum(key_square) + 1e-6f);
    const float query_factor = 1.0f / sqrt(simd_sum(query_square) + 1e-6f) * scale;
    const float share = sigmoid(b[ulong(r) * n_heads + head]);
    const float faded = simd_sum(seen) * key_factor;
    const float added = share * (own[2 * ulong(keys) + place] - faded) * key_factor;
    float sum = 0.0f;
    for (uint i = 0; i < kPerLane; ++i) {
      if (32 * i + lane >= key_dim) break;
      state[i] = fma(key[i], added, state[i]);
      sum = fma(state[i], query[i], sum);
    }
    sum = simd_sum(sum);
    if (lane == 0) out[ulong(r) * values + place] = sum * query_factor;
    // Only the states after the last two active rows of the span are written to the cache.
    bool stays = r + 2 >= end;
    for (uint next = r + 1; next < min(r + 3, end); ++next)
      stays = stays || (rows[next].flags & kRowActive) == 0;
    if (!stays) continue;
    device float* after = kept + (rows[r].position + 1) % 2 * half_size;
    for (uint i = 0; i < kPerLane; ++i) {
      const uint n = 32 * i + lane;
      if (n < key_dim) after[n] = state[i];
    }
  }
}
