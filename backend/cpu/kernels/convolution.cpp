// short_convolution: of a row's three parts b, c and x, u = b * x; y[i] = the sum over j of
//   weight[i, j] * u[row - (width - 1) + j, i], nothing before the text's first row; out = c * y.
//   u is kept at (sequence, position); of earlier rows in the same span it is computed again.
//   0 input: rows [rows, 3 dim], b, c, x   1 weight: vector [dim * width], the oldest row's first
//   2 cache: float [page][256][dim]   3 out: activation [rows, dim]   25 ShortConvolutionParams
//   slices: one row   limit: latency at one row; memory: (16 + 8 width) * rows * dim bytes, most of
//   which are in a cache of the processor
// causal_convolution: out[r, i] = silu(bias[i] + the sum over j of weight[i, j] *
//   input[row - (width - 1) + j, i]), nothing before the text's first row; the last inputs are kept.
//   0 input: rows [rows, input_stride]   1 weight: vector [n * width], the oldest row's first
//   2 bias: vector [n], optional   3 cache: float [page][n_kept][n], a ring: position p is at index p % n_kept
//   4 out: rows [rows, n]   25 CausalConvolutionParams
//   slices: kConvolved numbers of all rows of a span, which are written to the cache when all have read it
//   limit: as above, and the exponential
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/gate.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa, class Activation>
struct ShortConvolution {
  using Params = ShortConvolutionParams;

  static void row(const Call& call, const Params& params, uint64_t r, std::byte* scratch) {
    const uint32_t dim = params.dim, width = params.width;
    const Row& row = call.rows[r];
    const uint64_t n_rows_before = r - call.spans[row.span].first_row;  // in the span
    const float* weight = operand<const float>(call, 1, 0, 0);
    const float* own = input_of(call, params, r);
    float* const sums = reinterpret_cast<float*>(scratch);
    for (uint32_t i = 0; i < dim; ++i) sums[i] = 0;
    for (uint32_t back = width - 1; back > 0; --back) {
      if (row.position < back) continue;
      const float* taps = weight + (width - 1 - back);
      if (back <= n_rows_before) {
        const float* earlier = input_of(call, params, r - back);
        for (uint32_t i = 0; i < dim; ++i) {
          const float u = earlier[i] * earlier[2 * uint64_t{dim} + i];
          sums[i] += taps[uint64_t{i} * width] * u;
        }
      } else {
        const float* u = cached(call, params, row.sequence, row.position - back);
        for (uint32_t i = 0; i < dim; ++i) sums[i] += taps[uint64_t{i} * width] * u[i];
      }
    }
    float* const kept =
        row.flags & kRowActive ? cached(call, params, row.sequence, row.position) : nullptr;
    const float* taps = weight + (width - 1);
    for (uint32_t i = 0; i < dim; ++i) {
      const float u = own[i] * own[2 * uint64_t{dim} + i];
      if (kept != nullptr) kept[i] = u;
      sums[i] = own[uint64_t{dim} + i] * (sums[i] + taps[uint64_t{i} * width] * u);
    }
    Activation::write(call.operands[3] + r * Activation::row_bytes(dim), dim, 0, dim,
                      [&](uint32_t i, uint32_t n) { return Isa::load(sums + i, n); });
  }
  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const Params*>(call.params);
    return sizeof(float) * (uint64_t{params.dim} + Isa::kLanes);
  }

 private:
  static const float* input_of(const Call& call, const Params& params, uint64_t r) {
    return operand<const float>(call, 0, r, uint64_t{3} * params.dim);
  }
  static float* cached(const Call& call, const Params& params, uint32_t sequence,
                       uint32_t position) {
    const uint32_t page =
        page_of(call.pages, params.page_table_base, params.page_table_stride, sequence, position);
    return reinterpret_cast<float*>(call.operands[2]) +
           kv_offset(page, 1, 0, position % kPagePositions, params.dim);
  }
};

// Numbers of a row that a slice convolves; their weights stay in L1.
constexpr uint32_t kConvolved = 256;

template <class Isa>
struct CausalConvolution {
  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const CausalConvolutionParams*>(call.params);
    return uint64_t{call.n_spans} * parts(params);
  }
  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const CausalConvolutionParams*>(call.params);
    return sizeof(float) * uint64_t{params.width} * kConvolved;
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const CausalConvolutionParams*>(call.params);
    const uint32_t n_parts = parts(params);
    for (uint64_t slice = begin; slice < end; ++slice) {
      const Span& span = call.spans[call.first_span + slice / n_parts];
      const auto first = static_cast<uint32_t>(slice % n_parts) * kConvolved;
      const uint32_t left = params.n - first;
      convolve(call, params, span, first, left < kConvolved ? left : kConvolved,
               reinterpret_cast<float*>(scratch));
    }
  }

 private:
  static uint32_t parts(const CausalConvolutionParams& params) {
    return (params.n + kConvolved - 1) / kConvolved;
  }

  // Numbers [first, first + n) of all rows of a span.
  static void convolve(const Call& call, const CausalConvolutionParams& params, const Span& span,
                       uint32_t first, uint32_t n, float* taps) {
    const uint32_t width = params.width;
    const float* const weight = operand<const float>(call, 1, first, width);
    for (uint32_t back = 0; back < width; ++back)
      for (uint32_t i = 0; i < n; ++i)
        taps[back * kConvolved + i] = weight[uint64_t{i} * width + (width - 1 - back)];
    const float* const bias = operand<const float>(call, 2, 0, 0);
    const uint32_t page =
        page_of(call.pages, params.page_table_base, params.page_table_stride, span.sequence, 0);
    float* const kept = reinterpret_cast<float*>(call.operands[3]) +
                        uint64_t{page} * params.n_kept * params.n + first;
    const auto kept_of = [&](uint32_t position) {
      return kept + uint64_t{position % params.n_kept} * params.n;
    };
    const auto input_of = [&](uint64_t r) {
      return operand<const float>(call, 0, r, params.input_stride) + params.input_first + first;
    };

    const uint64_t first_row = span.first_row, end = first_row + span.n_rows;
    for (uint64_t r = first_row; r < end; ++r) {
      const uint32_t position = call.rows[r].position;
      float* const out = operand<float>(call, 4, r, params.n) + first;
      for (uint32_t i = 0; i < n; ++i) out[i] = bias != nullptr ? bias[first + i] : 0;
      for (uint32_t back = width; back-- > 0;) {
        if (position < back) continue;
        const float* const input =
            back <= r - first_row ? input_of(r - back) : kept_of(position - back);
        for (uint32_t i = 0; i < n; i += Isa::kLanes)
          Isa::store(out + i,
                     Isa::multiply_add(Isa::load(taps + back * kConvolved + i, n - i),
                                       Isa::load(input + i, n - i), Isa::load(out + i, n - i)),
                     n - i);
      }
      for (uint32_t i = 0; i < n; i += Isa::kLanes)
        Isa::store(out + i, silu<Isa>(Isa::load(out + i, n - i)), n - i);
    }
    // Now that all rows have seen what was kept.
    uint64_t last = end;  // behind the last active row
    while (last > first_row && !(call.rows[last - 1].flags & kRowActive)) --last;
    const uint64_t n_rows = last - first_row;
    for (uint64_t r = last - (n_rows < params.n_kept ? n_rows : params.n_kept); r < last; ++r)
      if (call.rows[r].flags & kRowActive)
        __builtin_memcpy(kept_of(call.rows[r].position), input_of(r), sizeof(float) * n);
  }
};

using Causal = CausalConvolution<ThisIsa>;

template <template <class> class Activation>
constexpr KernelEntry short_convolution_entry() {
  using Kernel = ShortConvolution<ThisIsa, Activation<ThisIsa>>;
  using Rows = RowsKernel<ThisIsa, ShortConvolutionParams, Kernel>;
  return {{Operation::short_convolution,
           Activation<ThisIsa>::kKind,
           {kAbsent, kAbsent, kAbsent},
           F32<ThisIsa>::kFormat},
          {Rows::slices, Rows::run, Kernel::scratch_bytes}};
}

constexpr KernelEntry kConvolutionEntries[] = {
    short_convolution_entry<F32Activation>(),
    short_convolution_entry<Bf16Activation>(),
    short_convolution_entry<Bf16PairActivation>(),
    short_convolution_entry<Q8Activation>(),
    short_convolution_entry<Q16Activation>(),
    {{Operation::causal_convolution, kAny, {kAbsent, kAbsent, kAbsent}, F32<ThisIsa>::kFormat},
     {Causal::slices, Causal::run, Causal::scratch_bytes}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::convolution() {
  return list_of(kConvolutionEntries);
}

}  // namespace akunu::cpu
