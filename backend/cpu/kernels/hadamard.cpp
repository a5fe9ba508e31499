// hadamard: every `width` numbers of a row times the Hadamard matrix / sqrt(width), which is orthogonal and
// its own inverse: what is large in one dimension becomes a little of all, so that a block's codes are finer
//   0 input: rows [rows, n]   1 out: activation [rows, n]   25 HadamardParams
//   slices: one row   limit: latency; log2(width) additions of each number
// Sums and differences of pairs 1, 2, 4 ... apart, in this order at every level: the same bits.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa, class Activation>
struct Hadamard {
  static void row(const Call& call, const HadamardParams& params, uint64_t r, std::byte*) {
    const float* input = operand<const float>(call, 0, r, params.n);
    std::byte* out = call.operands[1] + r * Activation::row_bytes(params.n);
    for (uint32_t begin = 0; begin < params.n; begin += params.width) {
      float rotated[kMaxHadamard];
      rotate(input + begin, params.width, rotated);
      Activation::write(out, params.n, begin, begin + params.width, [&](uint32_t i, uint32_t n) {
        return Isa::load(rotated + (i - begin), n);
      });
    }
  }

 private:
  typedef float Four __attribute__((vector_size(16)));

  static void rotate(const float* input, uint32_t width, float* out) {
    Four numbers[kMaxHadamard / 4];
    const uint32_t n = width / 4;
    __builtin_memcpy(numbers, input, sizeof(float) * uint64_t{width});
    for (uint32_t i = 0; i < n; ++i) {
      const Four one = numbers[i];
      const Four two = Four{one[0] + one[1], one[0] - one[1], one[2] + one[3], one[2] - one[3]};
      numbers[i] = Four{two[0] + two[2], two[1] + two[3], two[0] - two[2], two[1] - two[3]};
    }
    for (uint32_t apart = 1; apart < n; apart *= 2)
      for (uint32_t i = 0; i < n; i += 2 * apart)
        for (uint32_t j = i; j < i + apart; ++j) {
          const Four a = numbers[j], b = numbers[j + apart];
          numbers[j] = a + b;
          numbers[j + apart] = a - b;
        }
    const float factor = 1.0f / __builtin_sqrtf(static_cast<float>(width));
    for (uint32_t i = 0; i < n; ++i) numbers[i] *= factor;
    __builtin_memcpy(out, numbers, sizeof(float) * uint64_t{width});
  }
};

template <template <class> class Activation>
constexpr KernelEntry entry() {
  using Rows = RowsKernel<ThisIsa, HadamardParams, Hadamard<ThisIsa, Activation<ThisIsa>>>;
  return {{Operation::hadamard, Activation<ThisIsa>::kKind}, {Rows::slices, Rows::run, nullptr}};
}

constexpr KernelEntry kEntries[] = {
    entry<F32Activation>(), entry<Bf16Activation>(), entry<Bf16PairActivation>(),
    entry<Q8Activation>(),  entry<Q16Activation>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::hadamard() {
  return list_of(kEntries);
}

}  // namespace akunu::cpu
