// Matmul kernels on vectors for weights in super-blocks of 256.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/matmul_kernels.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
constexpr MatmulKernel kernel() {
  return matmul_kernel<Multiply<ThisIsa, Format<ThisIsa>>>();
}

constexpr MatmulKernel kKernels[] = {
    kernel<Q2_K>(), kernel<Q3_K>(), kernel<Q4_K>(), kernel<Q5_K>(), kernel<Q6_K>(),
};

}  // namespace

template <>
MatmulKernels VectorMatmuls<ThisIsa>::of_k() {
  return list_of(kKernels);
}

}  // namespace akunu::cpu
