// rms_norm: out[r, i] = kind(input[r, i] * (1 / sqrt(mean(input[r]^2) + epsilon)) * weight[i])
//   0 input: rows [rows, dim]   1 weight: vector [dim]   2 out: activation [rows, dim]
//   25 NormParams
// norm_add: data[r, i] += the same, in f32
//   0 input: rows [rows, dim]   1 weight: vector [dim]   2 data: rows [rows, dim]   25 NormParams
// head_norm: the same over each head's slice, in place
//   0 data: rows [rows, n_heads * head_dim]   1 weight: vector [head_dim]   25 HeadNormParams
//   slices: one row   limit: latency; the row is in L2
#include "cpu/kernels/norm.h"

#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa, class Activation>
struct RmsNorm {
  static void row(const Call& call, const NormParams& params, uint64_t r, std::byte*) {
    const uint32_t dim = params.dim;
    const float* input = operand<const float>(call, 0, r, dim);
    const float* weight = operand<const float>(call, 1, 0, 0);
    const auto factor = Isa::broadcast(inverse_rms<Isa>(input, dim, params.epsilon));
    Activation::write(call.operands[2] + r * Activation::row_bytes(dim), dim, 0, dim,
                      [&](uint32_t i, uint32_t n) {
                        return Isa::multiply(Isa::multiply(Isa::load(input + i, n), factor),
                                             Isa::load(weight + i, n));
                      });
  }
};

template <class Isa>
struct NormAdd {
  static void row(const Call& call, const NormParams& params, uint64_t r, std::byte*) {
    const uint32_t dim = params.dim;
    const float* input = operand<const float>(call, 0, r, dim);
    const float* weight = operand<const float>(call, 1, 0, 0);
    float* data = operand<float>(call, 2, r, dim);
    const auto factor = Isa::broadcast(inverse_rms<Isa>(input, dim, params.epsilon));
    F32Activation<Isa>::write(
        reinterpret_cast<std::byte*>(data), dim, 0, dim, [&](uint32_t i, uint32_t n) {
          const auto normed = Isa::multiply(Isa::multiply(Isa::load(input + i, n), factor),
                                            Isa::load(weight + i, n));
          return Isa::add(Isa::load(data + i, n), normed);
        });
  }
};

template <class Isa>
struct HeadNorm {
  static void row(const Call& call, const HeadNormParams& params, uint64_t r, std::byte*) {
    const uint32_t head_dim = params.head_dim;
    float* data = operand<float>(call, 0, r, uint64_t{params.n_heads} * head_dim);
    const float* weight = operand<const float>(call, 1, 0, 0);
    for (uint32_t h = 0; h < params.n_heads; ++h) {
      float* head = data + uint64_t{h} * head_dim;
      rms_norm_floats<Isa>(head, weight, head_dim, params.epsilon, head);
    }
  }
};

template <template <class> class Activation>
constexpr KernelEntry rms_norm() {
  using Rows = RowsKernel<ThisIsa, NormParams, RmsNorm<ThisIsa, Activation<ThisIsa>>>;
  return {{Operation::rms_norm, Activation<ThisIsa>::kKind}, {Rows::slices, Rows::run, nullptr}};
}

using NormAddRows = RowsKernel<ThisIsa, NormParams, NormAdd<ThisIsa>>;
using HeadNormRows = RowsKernel<ThisIsa, HeadNormParams, HeadNorm<ThisIsa>>;

constexpr KernelEntry kNormEntries[] = {
    rms_norm<F32Activation>(),
    rms_norm<Bf16Activation>(),
    rms_norm<Bf16PairActivation>(),
    rms_norm<Q8Activation>(),
    rms_norm<Q16Activation>(),
    {{Operation::norm_add}, {NormAddRows::slices, NormAddRows::run, nullptr}},
    {{Operation::head_norm}, {HeadNormRows::slices, HeadNormRows::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::norm() {
  return list_of(kNormEntries);
}

}  // namespace akunu::cpu
