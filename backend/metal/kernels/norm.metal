// rms_norm: a threadgroup per row. Floor: the row twice (the second time out of the cache) and the
// weight. norm_add: likewise, and what it is added to. head_norm: a SIMD-group per head, in place.
// hadamard: a SIMD-group per `width` numbers.
#include "metal/kernels/norm.h"

// 1 / rms of a row, in every thread. `partial`: a float per SIMD-group. How many threads there are
// follows from `dim` alone.
inline float row_factor(device const float* x, uint dim, float epsilon, threadgroup float* partial,
                        uint thread_index, uint simdgroup, uint lane, uint n_simdgroups) {
  const bool aligned = dim % 4 == 0;
  float4 squares = float4(0.0f);
  for (uint i = 4 * thread_index; i < dim; i += 4 * 32 * n_simdgroups) {
    const float4 v = load_four(x, i, dim, aligned);
    squares = fma(v, v, squares);
  }
  const float sum = threadgroup_sum(sum_of(squares), partial, simdgroup, lane, n_simdgroups);
  return 1.0f / sqrt(sum / float(dim) + epsilon);
}

inline void store_four(device float* to, uint i, uint dim, bool aligned, float4 v) {
  if (aligned) {
    *reinterpret_cast<device float4*>(to + i) = v;
  } else {
    for (uint j = 0; j < min(4u, dim - i); ++j) to[i + j] = v[j];
  }
}

[[kernel]] void rms_norm(
    device const float* input [[buffer(0)]], device const float* weight [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant NormParams& params [[buffer(25)]], threadgroup float* partial [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint dim = params.dim;
  const bool aligned = dim % 4 == 0;
  const ulong first = ulong(pass.first_row + group.x) * dim;
  device const float* x = input + first;
  const float factor =
      row_factor(x, dim, params.epsilon, partial, thread_index, simdgroup, lane, n_simdgroups);
  for (uint i = 4 * thread_index; i < dim; i += 4 * 32 * n_simdgroups) {
    const float4 v = (load_four(x, i, dim, aligned) * factor) * load_four(weight, i, dim, aligned);
    store_four(out + first, i, dim, aligned, v);
  }
}

// data += rms_norm(input)
[[kernel]] void norm_add(
    device const float* input [[buffer(0)]], device const float* weight [[buffer(1)]],
    device float* data [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant NormParams& params [[buffer(25)]], threadgroup float* partial [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint dim = params.dim;
  const bool aligned = dim % 4 == 0;
  const ulong first = ulong(pass.first_row + group.x) * dim;
  device const float* x = input + first;
  const float factor =
      row_factor(x, dim, params.epsilon, partial, thread_index, simdgroup, lane, n_simdgroups);
  for (uint i = 4 * thread_index; i < dim; i += 4 * 32 * n_simdgroups) {
    const float4 v = (load_four(x, i, dim, aligned) * factor) * load_four(weight, i, dim, aligned);
    store_four(data + first, i, dim, aligned, load_four(data + first, i, dim, aligned) + v);
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

// Sums and differences of pairs 1, 2, 4 ... apart, those 32 apart within a lane. Grid: (n / width / n_simdgroups, rows).
[[kernel]] void hadamard(device const float* input [[buffer(0)]], device float* out [[buffer(1)]],
                         constant PassRange& pass [[buffer(23)]],
                         constant HadamardParams& params [[buffer(25)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint n_simdgroups [[simdgroups_per_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
  constexpr uint kPerLane = kMaxHadamard / 32;
  const uint width = params.width, n = width / 32;
  const uint part = group.x * n_simdgroups + simdgroup;
  if (part >= params.n / width) return;
  const ulong first = ulong(pass.first_row + group.y) * params.n + ulong(part) * width;
  float numbers[kPerLane];
  for (uint i = 0; i < kPerLane; ++i) {
    numbers[i] = i < n ? input[first + 32 * i + lane] : 0.0f;
    for (uint apart = 1; apart < 32; apart *= 2) {
      const float other = simd_shuffle_xor(numbers[i], ushort(apart));
      numbers[i] = (lane & apart) == 0 ? numbers[i] + other : other - numbers[i];
    }
  }
  for (uint apart = 1; apart < n; apart *= 2)
    for (uint i = 0; i < kPerLane; ++i) {
      if ((i & apart) != 0) continue;
      const float a = numbers[i], b = numbers[i + apart];
      numbers[i] = a + b;
      numbers[i + apart] = a - b;
    }
  const float factor = 1.0f / sqrt(float(width));
  for (uint i = 0; i < kPerLane; ++i)
    if (i < n) out[first + 32 * i + lane] = numbers[i] * factor;
}
