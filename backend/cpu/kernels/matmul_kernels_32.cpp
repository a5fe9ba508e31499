// Matmul kernels on vectors for weights of floats, and in blocks of 32.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/matmul_kernels.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
constexpr MatmulKernel kernel() {
  return matmul_kernel<Multiply<ThisIsa, Format<ThisIsa>>>();
}

constexpr MatmulKernel kKernels[] = {
    kernel<F32>(),  kernel<F16>(),  kernel<BF16>(), kernel<Q4_0>(),
    kernel<Q4_1>(), kernel<Q5_0>(), kernel<Q5_1>(), kernel<Q8_0>(),
};

}  // namespace

template <>
MatmulKernels VectorMatmuls<ThisIsa>::of_floats_and_32() {
  return list_of(kKernels);
}

}  // namespace akunu::cpu
