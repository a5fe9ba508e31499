// Matmul kernels on vectors for weights whose codes are places in a table of 16 numbers.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_table.h"
#include "cpu/kernels/matmul_kernels.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
constexpr MatmulKernel kernel() {
  return matmul_kernel<Multiply<ThisIsa, Format<ThisIsa>>>();
}

constexpr MatmulKernel kKernels[] = {
    kernel<IQ4_NL>(),
    kernel<IQ4_XS>(),
    kernel<MXFP4>(),
    kernel<NVFP4>(),
};

}  // namespace

template <>
MatmulKernels VectorMatmuls<ThisIsa>::of_tables() {
  return list_of(kKernels);
}

}  // namespace akunu::cpu
