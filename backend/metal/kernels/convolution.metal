// short_convolution (docs/kernels.md). All activations are float32. Floor: the operands' bytes; latency
// decides.
#include "metal/kernels/common.h"

// Where `u` of a position lies.
inline ulong kept_at(device const uint* pages, constant ShortConvolutionParams& params,
                     uint sequence, uint position) {
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, sequence, position);
  return kv_offset(page, 1, 0, position % kPagePositions, params.dim);
}

// A thread per number: of rows before it in its span it computes u again, and so waits for none.
// Grid: (dim / threads, rows). A row that is not active keeps nothing.
[[kernel]] void short_convolution(
    device const float* input [[buffer(0)]], device const float* weight [[buffer(1)]],
    device float* cache [[buffer(2)]], device float* out [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]], constant ShortConvolutionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    device const Span* spans [[buffer(30)]], uint3 position [[thread_position_in_grid]]) {
  const uint dim = params.dim, width = params.width, i = position.x;
  if (i >= dim) return;
  const uint row = pass.first_row + position.y, place = rows[row].position;
  const uint sequence = rows[row].sequence, n_before = row - spans[rows[row].span].first_row;
  device const float* own = input + ulong(row) * 3 * dim + i;
  device const float* taps = weight + ulong(i) * width;
  float sum = 0.0f;
  for (uint back = width - 1; back > 0; --back) {
    if (place < back) continue;
    float u = 0.0f;
    if (back <= n_before) {
      device const float* earlier = input + ulong(row - back) * 3 * dim + i;
      u = earlier[0] * earlier[2 * ulong(dim)];
    } else {
      u = cache[kept_at(pages, params, sequence, place - back) + i];
    }
    sum += taps[width - 1 - back] * u;
  }
  const float u = own[0] * own[2 * ulong(dim)];
  if ((rows[row].flags & kRowActive) != 0) cache[kept_at(pages, params, sequence, place) + i] = u;
  out[ulong(row) * dim + i] = own[dim] * (sum + taps[width - 1] * u);
}
