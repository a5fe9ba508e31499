// selective_scan and gated_norm (docs/kernels.md). All activations are float32. Floor of a scan: the state
// once in and once out; of a prompt two `fma`s per number of state and row.
#include "metal/kernels/common.h"
#include "metal/kernels/functions.h"

// A SIMD-group per row of a head's state, which its lanes hold, 32 apart, while the rows of a span go by.
// Grid: (n_heads * head_dim / n_simdgroups, spans).
[[kernel]] void selective_scan(
    device const float* input [[buffer(0)]], device const float* times [[buffer(1)]],
    device const float* rate [[buffer(2)]], device const float* time_bias [[buffer(3)]],
    device const float* skip [[buffer(4)]], device float* states [[buffer(5)]],
    device float* out [[buffer(6)]], constant PassRange& pass [[buffer(23)]],
    constant SelectiveScanParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], device const Span* spans [[buffer(30)]],
    uint3 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint kPerLane = kMaxStateDim / 32;
  const uint inner = params.n_heads * params.head_dim, state_dim = params.state_dim;
  const uint place = group.x * n_simdgroups + simdgroup;
  if (place >= inner) return;
  const uint head = place / params.head_dim;
  const uint head_group = head / (params.n_heads / params.n_groups);
  device const Span& span = spans[pass.first_span + group.y];
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, span.sequence, 0);
  const ulong half_size = ulong(inner) * state_dim;
  device float* kept = states + 2 * ulong(page) * half_size + ulong(place) * state_dim;
  const ulong stride = ulong(inner) + 2 * ulong(params.n_groups) * state_dim;

  float state[kPerLane];
  const uint end = span.first_row + span.n_rows, first_position = rows[span.first_row].position;
  device const float* before = kept + first_position % 2 * half_size;
  for (uint i = 0; i < kPerLane; ++i) {
    const uint n = 32 * i + lane;
    state[i] = first_position == 0 || n >= state_dim ? 0.0f : before[n];
  }
  for (uint r = span.first_row; r < end; ++r) {
    if ((rows[r].flags & kRowActive) == 0) {
      if (lane == 0) out[ulong(r) * inner + place] = 0.0f;
      continue;
    }
    device const float* own = input + r * stride;
    device const float* b = own + inner + ulong(head_group) * state_dim;
    device const float* c = b + ulong(params.n_groups) * state_dim;
    const float x = own[place];
    float time =
        softplus(times[ulong(r) * params.time_stride + params.time_first + head] *
                     params.time_factor +
                 time_bias[head]);
    time = time < params.time_min ? params.time_min : time;
    time = time > params.time_max ? params.time_max : time;
    const float keep = exp_of(time * rate[head]), in = time * x;
    float sum = 0.0f;
    for (uint i = 0; i < kPerLane; ++i) {
      const uint n = 32 * i + lane;
      if (n >= state_dim) break;
      state[i] = fma(keep, state[i], in * b[n]);
      sum = fma(state[i], c[n], sum);
    }
    sum = simd_sum(sum);
    if (lane == 0) out[ulong(r) * inner + place] = fma(skip[head], x, sum);
    // Only the states after the last two active rows of the span are written to the cache.
    bool stays = r + 2 >= end;
    for (uint next = r + 1; next < min(r + 3, end); ++next)
      stays = stays || (rows[next].flags & kRowActive) == 0;
    if (!stays) continue;
    device float* after = kept + (rows[r].position + 1) % 2 * half_size;
    for (uint i = 0; i < kPerLane; ++i) {
      const uint n = 32 * i + lane;
      if (n < state_dim) after[n] = state[i];
    }
  }
}

// A threadgroup per group of numbers of a row; without a weight they are not normed. Grid: (dim / group, rows).
[[kernel]] void gated_norm(
    device const float* input [[buffer(0)]], device const float* gate [[buffer(1)]],
    device const float* weight [[buffer(2), function_constant(kIsBound2)]],
    device float* out [[buffer(3)]], constant PassRange& pass [[buffer(23)]],
    constant GatedNormParams& params [[buffer(25)]],
    threadgroup float* partial [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint first = group.x * params.group, row = pass.first_row + group.y;
  device const float* x = input + ulong(row) * params.dim + first;
  device const float* z = gate + ulong(row) * params.gate_stride + params.gate_first + first;
  float squares = 0.0f;
  for (uint i = thread_index; i < params.group; i += 32 * n_simdgroups) {
    const float gated = x[i] * silu(z[i] * params.gate_factor);
    if (kIsBound2)
      squares = fma(gated, gated, squares);
    else
      out[ulong(row) * params.dim + first + i] = gated;
  }
  if (!kIsBound2) return;
  const float sum = threadgroup_sum(squares, partial, simdgroup, lane, n_simdgroups);
  const float factor = 1.0f / sqrt(sum / float(params.group) + params.epsilon);
  for (uint i = thread_index; i < params.group; i += 32 * n_simdgroups)
    out[ulong(row) * params.dim + first + i] =
        (x[i] * silu(z[i] * params.gate_factor) * factor) * weight[first + i];
}
