// The int16 path on vectors: weights of 16-bit floats, rounded to q16_32, at levels that multiply
// pairs of int16.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_int16.h"
#include "cpu/kernels/matmul_kernels.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

template <class Isa>
MatmulKernels int16_kernels() {
  if constexpr (Isa::Columns::Policy::kInt16Rows > 0) {
    static constexpr MatmulKernel kKernels[] = {
        matmul_kernel<Multiply<Isa, Int16Weights<Isa, F16<Isa>>>>(),
        matmul_kernel<Multiply<Isa, Int16Weights<Isa, BF16<Isa>>>>(),
    };
    return list_of(kKernels);
  } else {
    return {nullptr, 0};
  }
}

}  // namespace

template <>
MatmulKernels VectorMatmuls<ThisIsa>::of_int16() {
  return int16_kernels<ThisIsa>();
}

}  // namespace akunu::cpu
