// short_convolution: of a row's three parts b, c and x, u = b * x; y[i] = the sum over j of
//   weight[i, j] * u[row - (width - 1) + j, i], nothing before the text's first row; out = c * y.
//   u is kept at (sequence, position); of earlier rows in the same span it is computed again.
//   0 input: rows [rows, 3 dim], b, c, x   1 weight: vector [dim * width], the oldest row's first
//   2 cache: float [page][256][dim]   3 out: activation [rows, dim]   25 ShortConvolutionParams
//   slices: one row   limit: latency at one row; memory: (16 + 8 width) * rows * dim bytes, most of
//   which are in a cache of the processor
// causal_convolution: out[r, i] = silu(bias[i] + the sum over j of weight[i, j] *
//   input[row - (width - 1) + j, i]), nothing before the text's first row; the input is kept.
//   0 input: rows [rows, input_stride]   1 weight: vector [n * width], the oldest row's first
//   2 bias: vector [n], optional   3 cache: float [page][256][n]   4 out: rows [rows, n]
//   25 CausalConvolutionParams
//   slices: one row   limit: as above, and the exponential
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/gate.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

// The n inputs that the cache, operand `slot`, keeps of a position.
template <class Params>
float* cached_inputs(const Call& call, const Params& params, uint32_t slot, uint32_t n,
                     uint32_t sequence, uint32_t position) {
  const uint32_t page =
      page_of(call.pages, params.page_table_base, params.page_table_stride, sequence, position);
  return reinterpret_cast<float*>(call.operands[slot]) +
         kv_offset(page, 1, 0, position % kPagePositions, n);
}

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
    return cached_inputs(call, params, 2, params.dim, sequence, position);
  }
};

template <class Isa>
struct CausalConvolution {
  static void row(const Call& call, const CausalConvolutionParams& params, uint64_t r, std::byte*) {
    const uint32_t n = params.n, width = params.width;
    const Row& row = call.rows[r];
    const uint64_t n_rows_before = r - call.spans[row.span].first_row;  // in the span
    const float* weight = operand<const float>(call, 1, 0, 0);
    const float* bias = operand<const float>(call, 2, 0, 0);
    float* const out = operand<float>(call, 4, r, n);
    for (uint32_t i = 0; i < n; ++i) out[i] = bias != nullptr ? bias[i] : 0;
    for (uint32_t back = width; back-- > 0;) {
      if (row.position < back) continue;
      const float* input = back <= n_rows_before
                               ? input_of(call, params, r - back)
                               : cached(call, params, row.sequence, row.position - back);
      const float* taps = weight + (width - 1 - back);
      for (uint32_t i = 0; i < n; ++i) out[i] += taps[uint64_t{i} * width] * input[i];
    }
    for (uint32_t i = 0; i < n; i += Isa::kLanes)
      Isa::store(out + i, silu<Isa>(Isa::load(out + i, n - i)), n - i);
    if (!(row.flags & kRowActive)) return;
    __builtin_memcpy(cached(call, params, row.sequence, row.position), input_of(call, params, r),
                     sizeof(float) * n);
  }

 private:
  static const float* input_of(const Call& call, const CausalConvolutionParams& params,
                               uint64_t r) {
    return operand<const float>(call, 0, r, params.input_stride) + params.input_first;
  }
  static float* cached(const Call& call, const CausalConvolutionParams& params, uint32_t sequence,
                       uint32_t position) {
    return cached_inputs(call, params, 3, params.n, sequence, position);
  }
};

using CausalRows = RowsKernel<ThisIsa, CausalConvolutionParams, CausalConvolution<ThisIsa>>;

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
     {CausalRows::slices, CausalRows::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::convolution() {
  return list_of(kConvolutionEntries);
}

}  // namespace akunu::cpu
