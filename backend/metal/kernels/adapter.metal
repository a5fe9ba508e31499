// What a row's low-rank adapters add to the product of a weight. A list in the options of the row's
// sequence says which adapters those are: their number, then for each its own number and its share.
// The order of every sum depends on the row's own adapters alone. Rows without one are passed over.
#include "metal/kernels/common.h"

// out[row, j] = weight[j] . input[row], for the rows j of the row's adapters; a SIMD-group each.
// Grid: (rank, rows).
template <class Number>
[[kernel]] void adapter_down(
    device const float* input [[buffer(0)]], device const Number* weight [[buffer(1)]],
    device const AdapterPart* parts [[buffer(2)]], device const uint* options [[buffer(3)]],
    device float* out [[buffer(4)]], constant PassRange& pass [[buffer(23)]],
    constant AdapterParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    uint3 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const uint k = params.width, j = group.x, row = pass.first_row + group.y;
  if (rows[row].adapter == kNone) return;
  device const uint* list =
      options + ulong(rows[row].sequence) * kMaxOptionWords + rows[row].adapter;
  bool is_own = false;
  for (uint i = 0; i < list[0]; ++i) {
    const AdapterPart part = parts[list[1 + 2 * i]];
    is_own = is_own || (j >= part.first && j - part.first < part.rank);
  }
  if (!is_own) return;
  device const float* x = input + ulong(row) * k;
  device const Number* w = weight + ulong(j) * k;
  float4 sums = float4(0.0f);
  for (uint i = 4 * lane; i < k; i += 128)
    sums = fma(load_four(w, i, k, k % 4 == 0), load_four(x, i, k, k % 4 == 0), sums);
  const float sum = simd_sum(sum_of(sums));
  if (lane == 0) out[ulong(row) * params.rank + j] = sum;
}

inline float number_at(device const float* p, ulong i) { return p[i]; }
inline float number_at(device const half* p, ulong i) { return float(p[i]); }
inline float number_at(device const ushort* p, ulong i) { return as_type<float>(uint(p[i]) << 16); }

// data[row, i] += the sum over j of share * scale * input[row, j] * weight[j, i]; a thread per number.
template <class Number>
[[kernel]] void adapter_up(
    device const float* input [[buffer(0)]], device const Number* weight [[buffer(1)]],
    device const AdapterPart* parts [[buffer(2)]], device const uint* options [[buffer(3)]],
    device float* data [[buffer(4)]], constant PassRange& pass [[buffer(23)]],
    constant AdapterParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    uint3 position [[thread_position_in_grid]]) {
  const uint n = params.width, row = pass.first_row + position.y;
  if (position.x >= n || rows[row].adapter == kNone) return;
  device const uint* list =
      options + ulong(rows[row].sequence) * kMaxOptionWords + rows[row].adapter;
  device const float* x = input + ulong(row) * params.rank;
  float sum = 0.0f;
  for (uint i = 0; i < list[0]; ++i) {
    const AdapterPart part = parts[list[1 + 2 * i]];
    const float factor = as_type<float>(list[2 + 2 * i]) * part.scale;
    for (uint j = part.first; j < part.first + part.rank; ++j)
      sum = fma(number_at(weight, ulong(j) * n + position.x), factor * x[j], sum);
  }
  const ulong at = ulong(row) * n + position.x;
  data[at] = data[at] + sum;
}

#define AKUNU_ADAPTER(name, Number)                                                        \
  template [[host_name("adapter_down_" #name)]] [[kernel]] decltype(adapter_down<Number>)  \
      adapter_down<Number>;                                                                \
  template [[host_name("adapter_up_" #name)]] [[kernel]] decltype(adapter_up<Number>) adapter_up<Number>;

AKUNU_ADAPTER(f32, float)
AKUNU_ADAPTER(f16, half)
AKUNU_ADAPTER(bf16, ushort)
