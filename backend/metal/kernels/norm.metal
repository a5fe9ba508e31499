// rms_norm: a threadgroup per row. Floor: the row twice (the second time out of the cache) and the
// weight. head_norm: a SIMD-group per head, in place.
#include "metal/kernels/norm.h"

// `partial`: a float per SIMD-group. How many threads there are follows from `dim` alone.
[[kernel]] void rms_norm(
    device const float* input [[buffer(0)]], device const float* weight [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant NormParams& params [[buffer(25)]], threadgroup float* partial [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint dim = params.dim, n_threads = 32 * n_simdgroups;
  const bool aligned = dim % 4 == 0;
  const ulong first = ulong(pass.first_row + group.x) * dim;
  device const float* x = input + first;
  device float* y = out + first;
  float4 squares = float4(0.0f);
  for (uint i = 4 * thread_index; i < dim; i += 4 * n_threads) {
    const float4 v = load_four(x, i, dim, aligned);
    squares = fma(v, v, squares);
  }
  const float sum = threadgroup_sum(sum_of(squares), partial, simdgroup, lane, n_simdgroups);
  const float factor = 1.0f / sqrt(sum / float(dim) + params.epsilon);
  for (uint i = 4 * thread_index; i < dim; i += 4 * n_threads) {
    const float4 v = (load_four(x, i, dim, aligned) * factor) * load_four(weight, i, dim, aligned);
    if (aligned) {
      *reinterpret_cast<device float4*>(y + i) = v;
    } else {
      for (uint j = 0; j < min(4u, dim - i); ++j) y[i + j] = v[j];
    }
  }
}

// Grid: (heads / n_simdgroups, rows).
[[kernel]] void head_norm(
    device float* data [[buffer(0)]], device const float* weight [[buffer(1)]],
    constant PassRange& pass [[buffer(23)]], constant HeadNormParams& params [[buffer(25)]],
    uint3 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint h = group.x * n_simdgroups + simdgroup;
  if (h >= params.n_heads) return;
  device float* head =
      data + (ulong(pass.first_row + group.y) * params.n_heads + h) * params.head_dim;
  const Head normed = head_of(head, weight, true, params.head_dim, params.epsilon, lane);
  for (uint i = lane; i < params.head_dim; i += 32) head[i] = head_value(normed, i);
}
