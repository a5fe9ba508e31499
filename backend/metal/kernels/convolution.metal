// short_convolution and causal_convolution (docs/kernels.md). All activations are float32. Floor: the operands' bytes; latency
// decides.
#include "metal/kernels/common.h"
#include "metal/kernels/functions.h"

// Where what is kept of a position lies.
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

// A thread per number of a row, but one for those rows of a span that see what the cache keeps: when it has read
// that, it replaces it by the inputs of the span's last rows. Grid: (n / threads, rows).
[[kernel]] void causal_convolution(
    device const float* input [[buffer(0)]], device const float* weight [[buffer(1)]],
    device const float* bias [[buffer(2), function_constant(kIsBound2)]],
    device float* cache [[buffer(3)]], device float* out [[buffer(4)]],
    constant PassRange& pass [[buffer(23)]],
    constant CausalConvolutionParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], device const Span* spans [[buffer(30)]],
    uint3 position [[thread_position_in_grid]]) {
  const uint n = params.n, width = params.width, i = position.x;
  if (i >= n) return;
  const uint row = pass.first_row + position.y;
  device const Span& span = spans[rows[row].span];
  const uint first_row = span.first_row, end = first_row + span.n_rows;
  const bool is_first = row == first_row;
  if (!is_first && row - first_row < width - 1) return;
  const ulong stride = params.input_stride;
  device const float* inputs = input + params.input_first + i;
  device const float* taps = weight + ulong(i) * width;
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, span.sequence, 0);
  device float* kept = cache + ulong(page) * params.n_kept * n + i;
  for (uint r = row; r < (is_first ? min(row + width - 1, end) : row + 1); ++r) {
    const uint place = rows[r].position;
    float sum = kIsBound2 ? bias[i] : 0.0f;
    for (uint back = width - 1; back > 0; --back) {
      if (place < back) continue;
      float earlier = 0.0f;
      if (back <= r - first_row)
        earlier = inputs[ulong(r - back) * stride];
      else
        earlier = kept[ulong((place - back) % params.n_kept) * n];
      sum = fma(taps[width - 1 - back], earlier, sum);
    }
    sum = fma(taps[width - 1], inputs[ulong(r) * stride], sum);
    out[ulong(r) * n + i] = silu(sum);
  }
  if (!is_first) return;
  uint last = end;  // behind the last active row
  while (last > row && (rows[last - 1].flags & kRowActive) == 0) --last;
  for (uint r = last - min(last - row, params.n_kept); r < last; ++r)
    if ((rows[r].flags & kRowActive) != 0)
      kept[ulong(rows[r].position % params.n_kept) * n] = inputs[ulong(r) * stride];
}
