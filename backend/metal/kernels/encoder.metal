// What encoders compute with and decoders do not: add_embedding, layer_norm, activate, span_attention
// and pool. All activations are float32.
#include "metal/kernels/formats.h"
#include "metal/kernels/functions.h"

// data[r] += table[index + offset]; a thread per 16 numbers. Grid: (dim / 16 / threads, rows).
template <class F>
[[kernel]] void add_embedding(device float* data [[buffer(0)]],
                              device const uchar* table [[buffer(1)]],
                              constant PassRange& pass [[buffer(23)]],
                              constant AddEmbeddingParams& params [[buffer(25)]],
                              device const Row* rows [[buffer(26)]],
                              uint3 position [[thread_position_in_grid]]) {
  const uint part = position.x, dim = params.dim;
  if (part >= (dim + 15) / 16) return;
  const uint row = pass.first_row + position.y;
  const uint index = params.index == kIndexPosition
                         ? rows[row].position
                         : uint(rows[row].position >= rows[row].second_segment);
  const uint wanted = min(index + params.offset, params.n_rows - 1);
  float4 q[4];
  for (uint piece = 0; piece < 4; ++piece) q[piece] = float4(0.0f);
  float scale = 1.0f, minimum = 0.0f;
  F::unpack_16(F::row(one_plane(table), wanted, dim), part, dim, q, scale, minimum);
  finish_16<F>(q, scale, minimum);
  device float* to = data + ulong(row) * dim + 16 * part;
  for (uint i = 0; i < min(16u, dim - 16 * part); ++i) to[i] = to[i] + q[i / 4][i % 4];
}

#define AKUNU_ADD_EMBEDDING(name, F) \
  template [[host_name("add_embedding_" #name)]] [[kernel]] decltype(add_embedding<F>) add_embedding<F>;

AKUNU_ADD_EMBEDDING(f32, F32)
AKUNU_ADD_EMBEDDING(f16, F16)
AKUNU_ADD_EMBEDDING(bf16, BF16)

// out = (input - mean) / sqrt(variance + epsilon) * weight + bias; a threadgroup per row.
[[kernel]] void layer_norm(
    device const float* input [[buffer(0)]], device const float* weight [[buffer(1)]],
    device const float* bias [[buffer(2), function_constant(kIsBound2)]],
    device float* out [[buffer(3)]], constant PassRange& pass [[buffer(23)]],
    constant NormParams& params [[buffer(25)]], threadgroup float* partial [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint dim = params.dim, n_threads = 32 * n_simdgroups;
  const ulong first = ulong(pass.first_row + group.x) * dim;
  device const float* x = input + first;
  float own = 0.0f;
  for (uint i = thread_index; i < dim; i += n_threads) own = own + x[i];
  const float mean = threadgroup_sum(own, partial, simdgroup, lane, n_simdgroups) / float(dim);
  own = 0.0f;
  for (uint i = thread_index; i < dim; i += n_threads) own = fma(x[i] - mean, x[i] - mean, own);
  const float variance = threadgroup_sum(own, partial, simdgroup, lane, n_simdgroups) / float(dim);
  const float factor = 1.0f / sqrt(variance + params.epsilon);
  for (uint i = thread_index; i < dim; i += n_threads) {
    const float normed = (x[i] - mean) * factor;
    if (kIsBound2)
      out[first + i] = fma(normed, weight[i], bias[i]);
    else
      out[first + i] = normed * weight[i];
  }
}

// out = act(input); a thread per number.
[[kernel]] void activate(device const float* input [[buffer(0)]], device float* out [[buffer(1)]],
                         constant PassRange& pass [[buffer(23)]],
                         constant ActivateParams& params [[buffer(25)]],
                         uint3 position [[thread_position_in_grid]]) {
  if (position.x >= params.n) return;
  const ulong row = pass.first_row + position.y;
  const uint stride = params.input_stride != 0 ? params.input_stride : params.n;
  const float x = input[row * stride + params.input_first + position.x];
  out[row * params.n + position.x] = params.activation == kActivationSilu       ? silu(x)
           : params.activation == kActivationGeluTanh ? gelu_tanh(x)
           : params.activation == kActivationGelu     ? gelu(x)
           : params.activation == kActivationTanh     ? tanh_of(x)
           : params.activation == kActivationReluSquared ? (x < 0.0f ? 0.0f : x * x)
           : params.activation == kActivationQuickGelu   ? x / (1.0f + exp_of(-1.702f * x))
                                                      : x;
}

constant constexpr uint kMostDims = 8;  // numbers of a head per lane: heads of up to 256

// ALiBi's slope of a head; 0 where there is none.
inline float alibi_slope(constant SpanAttentionParams& params, uint head) {
  if (params.alibi_first == 0.0f) return 0.0f;
  uint n_first = 1;
  while (2 * n_first <= params.n_heads) n_first *= 2;
  const bool is_first = head < n_first;
  const uint power = is_first ? head + 1 : 2 * (head - n_first) + 1;
  float slope = 1.0f;
  for (uint i = 0; i < power; ++i) slope = slope * (is_first ? params.alibi_first : params.alibi_second);
  return slope;
}

// A SIMD-group per row and head. Rows of the span come in groups of 32, a lane each for the scores;
// for the values, a lane has the head's numbers 32 apart. Grid: (heads, rows).
[[kernel]] void span_attention(
    device const float* query [[buffer(0)]], device const float* key [[buffer(1)]],
    device const float* value [[buffer(2)]], device float* out [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]], constant SpanAttentionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const Span* spans [[buffer(30)]],
    uint3 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const uint head_dim = params.head_dim, head = group.x, row = pass.first_row + group.y;
  const Span span = spans[rows[row].span];
  const uint own = row - span.first_row, window = params.window;
  const uint begin = window != 0 && own > window ? own - window : 0;
  const uint last = params.causal != 0 ? own + 1 : span.n_rows;
  const uint end = window != 0 && last - own > window ? own + window + 1 : last;
  const float slope = alibi_slope(params, head);
  const uint kv_head = head / (params.n_heads / params.n_kv_heads);
  const ulong kv_stride = ulong(params.n_kv_heads) * head_dim;
  const ulong kv_first = ulong(span.first_row) * kv_stride + ulong(kv_head) * head_dim;
  const ulong own_first = (ulong(row) * params.n_heads + head) * head_dim;
  float sums[kMostDims];
  for (uint d = 0; d < kMostDims; ++d) sums[d] = 0.0f;
  float largest = -infinity(), total = 0.0f;
  for (uint first = begin / 32 * 32; first < end; first += 32) {
    const uint at = first + lane;
    const bool seen = at >= begin && at < end;
    float score = -infinity();
    if (seen) {
      device const float* k = key + kv_first + at * kv_stride;
      float dot = 0.0f;
      for (uint i = 0; i < head_dim; ++i) dot = fma(query[own_first + i], k[i], dot);
      score = dot * params.scale;
      if (slope != 0.0f) score = score - slope * float(at > own ? at - own : own - at);
    }
    const float top = max(largest, simd_max(score));
    const float keep = exp_of(largest - top);
    const float weight = seen ? exp_of(score - top) : 0.0f;
    total = fma(total, keep, simd_sum(weight));
    largest = top;
    for (uint d = 0; d < kMostDims; ++d) sums[d] = sums[d] * keep;
    for (uint j = 0; j < 32; ++j) {
      const float each = simd_shuffle(weight, ushort(j));
      const uint from = first + j;
      if (from < begin || from >= end) continue;
      device const float* v = value + kv_first + from * kv_stride;
      for (uint d = 0; d < kMostDims; ++d)
        if (lane + 32 * d < head_dim) sums[d] = fma(each, v[lane + 32 * d], sums[d]);
    }
  }
  const float factor = 1.0f / total;
  for (uint d = 0; d < kMostDims; ++d)
    if (lane + 32 * d < head_dim) out[own_first + lane + 32 * d] = sums[d] * factor;
}

// out[head_row] = what the row's pool makes of its span; a thread per number.
[[kernel]] void pool(device const float* input [[buffer(0)]], device float* out [[buffer(1)]],
                     constant PassRange& pass [[buffer(23)]],
                     constant PoolParams& params [[buffer(25)]],
                     device const Row* rows [[buffer(26)]], device const Span* spans [[buffer(30)]],
                     uint3 position [[thread_position_in_grid]]) {
  const uint dim = params.dim;
  if (position.x >= dim) return;
  const uint row = pass.first_row + position.y;
  const uint head_row = rows[row].head_row;
  if (head_row == kNone) return;
  const Span span = spans[rows[row].span];
  const uint kind = rows[row].pool;
  device const float* x = input + ulong(span.first_row) * dim + position.x;
  float result = kind == kPoolOwn ? x[ulong(row - span.first_row) * dim] : x[0];
  if (kind == kPoolMean || kind == kPoolMax)
    for (uint j = 1; j < span.n_rows; ++j) {
      const float other = x[ulong(j) * dim];
      result = kind == kPoolMean ? result + other : (other > result ? other : result);
    }
  if (kind == kPoolMean) result = result * (1.0f / float(span.n_rows));
  out[ulong(head_row) * dim + position.x] = result;
}
