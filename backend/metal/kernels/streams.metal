// predict_streams, correct_streams, match_rms, sparsify (docs/kernels.md): a threadgroup per row. Floor:
// the row twice (the second time out of the cache), the router and the streams.
#include "metal/kernels/common.h"
#include "metal/kernels/functions.h"

// Where a thread is in its row, and what sums over the row need.
struct InRow {
  uint dim;
  bool aligned;
  uint first, step;  // of the numbers that this thread takes, four at a time
  uint simdgroup, lane, n_simdgroups;
};

inline InRow in_row(uint dim, bool aligned, uint thread_index, uint simdgroup, uint lane,
                    uint n_simdgroups) {
  return InRow{dim,       aligned, 4 * thread_index, 4 * 32 * n_simdgroups,
               simdgroup, lane,    n_simdgroups};
}

inline float total(InRow at, float4 sums, threadgroup float* partial) {
  return threadgroup_sum(sum_of(sums), partial, at.simdgroup, at.lane, at.n_simdgroups);
}

inline float mean_square(InRow at, device const float* x, threadgroup float* partial) {
  float4 squares = float4(0.0f);
  for (uint i = at.first; i < at.dim; i += at.step) {
    const float4 v = load_four(x, i, at.dim, at.aligned);
    squares = fma(v, v, squares);
  }
  return total(at, squares, partial) / float(at.dim);
}

inline void store_some(device float* to, uint i, InRow at, float4 v) {
  if (at.aligned) {
    *reinterpret_cast<device float4*>(to + i) = v;
  } else {
    for (uint j = 0; j < min(4u, at.dim - i); ++j) to[i + j] = v[j];
  }
}

// m_k of y, in every thread: the tanh of what router k makes of the normed row.
inline float4 routed(InRow at, device const float* y, device const float* norm,
                     device const float* router, uint n_streams, float epsilon,
                     threadgroup float* partial) {
  const float factor = 1.0f / sqrt(mean_square(at, y, partial) + epsilon);
  float4 m = float4(0.0f);
  for (uint k = 0; k < n_streams; ++k) {
    device const float* row = router + ulong(k) * at.dim;
    float4 sums = float4(0.0f);
    for (uint i = at.first; i < at.dim; i += at.step) {
      const float4 normed =
          load_four(y, i, at.dim, at.aligned) * load_four(norm, i, at.dim, at.aligned);
      sums = fma(normed, load_four(row, i, at.dim, at.aligned), sums);
    }
    m[k] = tanh_of(total(at, sums, partial) * factor / float(at.dim));
  }
  return m;
}

// The sum over k of coefficients[row, k] * m_k.
inline float coefficient(device const float* coefficients, uint row, uint n, float4 m) {
  float sum = 0.0f;
  for (uint k = 0; k < n; ++k) sum = fma(coefficients[row * n + k], m[k], sum);
  return sum;
}

[[kernel]] void predict_streams(
    device float* stream [[buffer(0)]], device float* others [[buffer(1)]],
    device const float* norm [[buffer(2)]], device const float* router [[buffer(3)]],
    device const float* coefficients [[buffer(4)]], device float* active [[buffer(5)]],
    constant PassRange& pass [[buffer(23)]], constant StreamsParams& params [[buffer(25)]],
    threadgroup float* partial [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint dim = params.dim, n = params.n_streams;
  const ulong row = pass.first_row + group.x;
  const InRow at = in_row(dim, dim % 4 == 0, thread_index, simdgroup, lane, n_simdgroups);
  device float* x_0 = stream + row * dim;
  device float* x_1 = others + row * (n - 1) * dim;
  device const float* y = params.active == 0 ? x_0 : x_1 + ulong(params.active - 1) * dim;
  const float4 m = routed(at, y, norm, router, n, params.epsilon, partial);
  float4 by[kMaxStreams];
  for (uint s = 0; s < kMaxStreams; ++s) {
    by[s] = float4(0.0f);
    for (uint t = 0; t < n; ++t)
      if (s < n) by[s][t] = coefficient(coefficients, s * n + t, n, m);
  }
  for (uint i = at.first; i < dim; i += at.step) {
    float4 x[kMaxStreams];
    for (uint t = 0; t < kMaxStreams; ++t)
      x[t] = t == 0  ? load_four(x_0, i, dim, at.aligned)
             : t < n ? load_four(x_1 + ulong(t - 1) * dim, i, dim, at.aligned)
                     : float4(0.0f);
    for (uint s = 0; s < kMaxStreams; ++s) {
      if (s >= n) continue;
      float4 sum = x[s];
      for (uint t = 0; t < kMaxStreams; ++t)
        if (t < n) sum = fma(float4(by[s][t]), x[t], sum);
      store_some(s == 0 ? x_0 : x_1 + ulong(s - 1) * dim, i, at, sum);
      if (s == params.active) store_some(active + row * dim, i, at, sum);
    }
  }
}

[[kernel]] void correct_streams(
    device float* stream [[buffer(0)]], device float* others [[buffer(1)]],
    device const float* norm [[buffer(2)]], device const float* router [[buffer(3)]],
    device const float* coefficients [[buffer(4)]],
    device const float* scale [[buffer(5), function_constant(kIsBound5)]],
    device float* data [[buffer(6)]], constant PassRange& pass [[buffer(23)]],
    constant StreamsParams& params [[buffer(25)]], threadgroup float* partial [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint dim = params.dim, n = params.n_streams;
  const ulong row = pass.first_row + group.x;
  const InRow at = in_row(dim, dim % 4 == 0, thread_index, simdgroup, lane, n_simdgroups);
  device float* x_0 = stream + row * dim;
  device float* x_1 = others + row * (n - 1) * dim;
  device float* y = data + row * dim;
  const float4 m = routed(at, y, norm, router, n, params.epsilon, partial);
  for (uint i = at.first; i < dim; i += at.step) {
    device float* active = params.active == 0 ? x_0 : x_1 + ulong(params.active - 1) * dim;
    const float4 change = load_four(y, i, dim, at.aligned) - load_four(active, i, dim, at.aligned);
    for (uint s = 0; s < n; ++s) {
      device float* x = s == 0 ? x_0 : x_1 + ulong(s - 1) * dim;
      const float by = coefficient(coefficients, s, n, m) + 1.0f;
      const float4 sum = fma(float4(by), change, load_four(x, i, dim, at.aligned));
      store_some(x, i, at, sum);
      if (s != params.active) continue;
      float4 scaled = sum;
      if (kIsBound5) scaled = scaled * load_four(scale, i, dim, at.aligned);
      store_some(y, i, at, scaled);
    }
  }
}

[[kernel]] void match_rms(
    device const float* input [[buffer(0)]], device const float* like [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant MatchRmsParams& params [[buffer(25)]], threadgroup float* partial [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint dim = params.dim;
  const bool aligned = dim % 4 == 0 && params.out_first % 4 == 0 && params.out_stride % 4 == 0;
  const InRow at = in_row(dim, aligned, thread_index, simdgroup, lane, n_simdgroups);
  const ulong row = pass.first_row + group.x;
  device const float* x = input + row * dim;
  device float* to = out + row * params.out_stride + params.out_first;
  const float wanted = mean_square(at, like + row * dim, partial);
  const float has = mean_square(at, x, partial);
  const float factor = sqrt(wanted) / sqrt(has < params.least ? params.least : has);
  for (uint i = at.first; i < dim; i += at.step)
    store_some(to, i, at, load_four(x, i, dim, aligned) * factor);
}

[[kernel]] void sparsify(device float* data [[buffer(0)]], constant PassRange& pass [[buffer(23)]],
                         constant SparsifyParams& params [[buffer(25)]],
                         threadgroup float* partial [[threadgroup(0)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint n_simdgroups [[simdgroups_per_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
  const uint n = params.n;
  const InRow at = in_row(n, n % 4 == 0, thread_index, simdgroup, lane, n_simdgroups);
  device float* x = data + ulong(pass.first_row + group.x) * n;
  float4 sums = float4(0.0f);
  for (uint i = at.first; i < n; i += at.step) sums = sums + load_four(x, i, n, at.aligned);
  const float mean = total(at, sums, partial) / float(n);
  float4 squares = float4(0.0f);
  for (uint i = at.first; i < n; i += at.step) {
    const float4 apart = load_four(x, i, n, at.aligned) - float4(mean);
    for (uint j = 0; j < min(4u, n - i); ++j) squares[j] = fma(apart[j], apart[j], squares[j]);
  }
  const float variance = total(at, squares, partial) / float(n);
  const float cut = mean + params.deviations * sqrt(variance);
  for (uint i = at.first; i < n; i += at.step) {
    float4 above = load_four(x, i, n, at.aligned) - float4(cut);
    for (uint j = 0; j < 4; ++j) above[j] = above[j] <= 0.0f ? 0.0f : above[j];  // a NaN stays
    store_some(x, i, at, above);
  }
}
