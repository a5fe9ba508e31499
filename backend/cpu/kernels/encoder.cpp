// What encoders compute with and decoders do not.
//   add_embedding: data[r] += table[index + offset], the index a row's position or token type
//     0 data: rows [rows, dim]   1 table: weight [n_rows, dim]   25 AddEmbeddingParams
//   layer_norm: out[r, i] = kind((input[r, i] - mean) * (1 / sqrt(variance + epsilon)) * weight[i] + bias[i])
//     0 input: rows [rows, dim]   1 weight, 2 bias: vectors [dim]   3 out: activation   25 NormParams
//   activate: out[r, i] = kind(act(input[r, i]))
//     0 input: rows [rows, n]   1 out: activation [rows, n]   25 ActivateParams
//   pool: out[head_row] = the row itself, the first of its span, or the mean or the maximum of its span
//     0 input: rows [rows, dim]   1 out: head_rows [., dim]   25 PoolParams
//   slices: one row   limit: latency; the row is in L2. A mean reads its span.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/plain_activation.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa, class Format>
struct AddEmbedding {
  static void row(const Call& call, const AddEmbeddingParams& params, uint64_t r, std::byte*) {
    const Row& row = call.rows[r];
    const uint32_t index =
        params.index == kIndexPosition ? row.position : (row.position >= row.second_segment);
    const uint32_t wanted = index + params.offset;
    // A row that the table lacks is the caller's mistake; it must not be read.
    const uint64_t i = wanted < params.n_rows ? wanted : params.n_rows - 1;
    const std::byte* added = call.operands[1] + i * Format::row_bytes(params.dim);
    float* data = operand<float>(call, 0, r, params.dim);
    F32Activation<Isa>::write(reinterpret_cast<std::byte*>(data), params.dim, 0, params.dim,
                              [&](uint32_t at, uint32_t n) {
                                return Isa::add(Isa::load(data + at, n),
                                                Format::load(added, at, n));
                              });
  }
};

// The sum of function(x) over a row, in four accumulators of eight lanes: cut by `dim` alone. Lanes
// behind the end hold function's 0.
template <class Isa, class Function>
static inline float sum_of_row(const float* input, uint32_t dim, const Function& function) {
  constexpr uint32_t kStep = 4 * Isa::kLanes;
  typename Isa::Vector sums[4] = {Isa::zero(), Isa::zero(), Isa::zero(), Isa::zero()};
  uint32_t i = 0;
  for (; i + kStep <= dim; i += kStep)
    for (uint32_t j = 0; j < 4; ++j)
      sums[j] = Isa::add(sums[j], function(Isa::load(input + i + Isa::kLanes * j)));
  for (; i + Isa::kLanes <= dim; i += Isa::kLanes)
    sums[0] = Isa::add(sums[0], function(Isa::load(input + i)));
  float rest = 0;
  if (i < dim) {
    float lanes[Isa::kLanes];
    Isa::store(lanes, function(Isa::load(input + i, dim - i)));
    for (uint32_t j = 0; i + j < dim; ++j) rest += lanes[j];
  }
  return Isa::sum_lanes(Isa::add(Isa::add(sums[0], sums[1]), Isa::add(sums[2], sums[3]))) + rest;
}

template <class Isa, class Activation>
struct LayerNorm {
  static void row(const Call& call, const NormParams& params, uint64_t r, std::byte*) {
    using Vector = typename Isa::Vector;
    const uint32_t dim = params.dim;
    const float* input = operand<const float>(call, 0, r, dim);
    const float* weight = operand<const float>(call, 1, 0, 0);
    const float* bias = operand<const float>(call, 2, 0, 0);
    const float n = static_cast<float>(dim);
    const auto mean = Isa::broadcast(sum_of_row<Isa>(input, dim, [](Vector x) { return x; }) / n);
    const float squares = sum_of_row<Isa>(input, dim, [&](Vector x) {
      const auto from_mean = Isa::subtract(x, mean);
      return Isa::multiply(from_mean, from_mean);
    });
    const auto factor = Isa::broadcast(1.0f / __builtin_sqrtf(squares / n + params.epsilon));
    Activation::write(call.operands[3] + r * Activation::row_bytes(dim), dim, 0, dim,
                      [&](uint32_t i, uint32_t count) {
                        const auto normed =
                            Isa::multiply(Isa::subtract(Isa::load(input + i, count), mean), factor);
                        const auto by = Isa::load(weight + i, count);
                        return bias == nullptr
                                   ? Isa::multiply(normed, by)
                                   : Isa::multiply_add(normed, by, Isa::load(bias + i, count));
                      });
  }
};

constexpr uint32_t kPart = 256;  // whole groups of every activation kind

// In the widest registers that a level has: GELU took 1.5 to 3 times as long in those of eight lanes,
// a tenth of an encoder's time. `results` has kPart numbers.
template <class Isa>
[[gnu::noinline]] static void activate_part(uint32_t activation, const float* input, uint32_t n,
                                            float* results) {
  using Wide = typename Isa::Wide;
  with_plain_activation<Wide>(activation, [&](const auto& function) {
    for (uint32_t i = 0; i < n; i += Wide::kLanes)
      Wide::store(results + i, function(n - i < Wide::kLanes ? Wide::load(input + i, n - i)
                                                             : Wide::load(input + i)));
  });
}

template <class Isa, class Activation>
struct Activate {
  static void row(const Call& call, const ActivateParams& params, uint64_t r, std::byte*) {
    const uint32_t n = params.n;
    const uint32_t stride = params.input_stride != 0 ? params.input_stride : n;
    const float* input = operand<const float>(call, 0, r, stride) + params.input_first;
    std::byte* const out = call.operands[1] + r * Activation::row_bytes(n);
    float results[kPart];
    for (uint32_t begin = 0; begin < n; begin += kPart) {
      const uint32_t end = n - begin < kPart ? n : begin + kPart;
      activate_part<Isa>(params.activation, input + begin, end - begin, results);
      Activation::write(out, n, begin, end, [&](uint32_t i, uint32_t count) {
        return Isa::load(results + (i - begin), count);
      });
    }
  }
};

template <class Isa>
struct Pool {
  using Vector = typename Isa::Vector;

  static void row(const Call& call, const PoolParams& params, uint64_t r, std::byte*) {
    const Row& row = call.rows[r];
    if (row.head_row == kNone) return;
    const Span& span = call.spans[row.span];
    const uint32_t dim = params.dim;
    float* out = operand<float>(call, 1, row.head_row, dim);
    const auto combined = [&](const auto& combine, float factor) {
      for (uint32_t i = 0; i < dim; i += Isa::kLanes) {
        const uint32_t n = dim - i < Isa::kLanes ? dim - i : Isa::kLanes;
        Vector sum = Isa::load(operand<const float>(call, 0, span.first_row, dim) + i, n);
        for (uint32_t j = 1; j < span.n_rows; ++j)
          sum = combine(
              sum,
              Isa::load(operand<const float>(call, 0, uint64_t{span.first_row} + j, dim) + i, n));
        Isa::store(out + i, Isa::multiply(sum, Isa::broadcast(factor)), n);
      }
    };
    if (row.pool == kPoolMean) {
      combined([](Vector a, Vector b) { return Isa::add(a, b); },
               1.0f / static_cast<float>(span.n_rows));
    } else if (row.pool == kPoolMax) {
      combined([](Vector a, Vector b) { return Isa::maximum(a, b); }, 1.0f);
    } else {
      const uint64_t from = row.pool == kPoolFirst ? span.first_row : r;
      __builtin_memcpy(out, operand<const float>(call, 0, from, dim), uint64_t{4} * dim);
    }
  }
};

template <template <class> class Format>
constexpr KernelEntry add_embedding_entry() {
  using Rows = RowsKernel<ThisIsa, AddEmbeddingParams, AddEmbedding<ThisIsa, Format<ThisIsa>>>;
  return {{Operation::add_embedding, kAny, {Format<ThisIsa>::kFormat, kAbsent, kAbsent}},
          {Rows::slices, Rows::run, nullptr}};
}

template <template <class> class Activation>
constexpr KernelEntry layer_norm_entry() {
  using Rows = RowsKernel<ThisIsa, NormParams, LayerNorm<ThisIsa, Activation<ThisIsa>>>;
  return {{Operation::layer_norm, Activation<ThisIsa>::kKind}, {Rows::slices, Rows::run, nullptr}};
}

template <template <class> class Activation>
constexpr KernelEntry activate_entry() {
  using Rows = RowsKernel<ThisIsa, ActivateParams, Activate<ThisIsa, Activation<ThisIsa>>>;
  return {{Operation::activate, Activation<ThisIsa>::kKind}, {Rows::slices, Rows::run, nullptr}};
}

using PoolRows = RowsKernel<ThisIsa, PoolParams, Pool<ThisIsa>>;

constexpr KernelEntry kEncoderEntries[] = {
    add_embedding_entry<F32>(),
    add_embedding_entry<F16>(),
    add_embedding_entry<BF16>(),
    layer_norm_entry<F32Activation>(),
    layer_norm_entry<Bf16Activation>(),
    layer_norm_entry<Bf16PairActivation>(),
    layer_norm_entry<Q8Activation>(),
    layer_norm_entry<Q16Activation>(),
    activate_entry<F32Activation>(),
    activate_entry<Bf16Activation>(),
    activate_entry<Bf16PairActivation>(),
    activate_entry<Q8Activation>(),
    activate_entry<Q16Activation>(),
    {{Operation::pool}, {PoolRows::slices, PoolRows::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::encoder() {
  return list_of(kEncoderEntries);
}

}  // namespace akunu::cpu
