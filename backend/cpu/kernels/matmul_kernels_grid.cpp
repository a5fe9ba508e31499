// Matmul kernels on vectors for weights whose codes are rows of a grid.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_grid.h"
#include "cpu/kernels/matmul_kernels.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
constexpr MatmulKernel kernel() {
  return matmul_kernel<Multiply<ThisIsa, Format<ThisIsa>>>();
}

constexpr MatmulKernel kKernels[] = {
    kernel<IQ2_XXS>(), kernel<IQ2_XS>(), kernel<IQ2_S>(), kernel<IQ3_XXS>(), kernel<IQ3_S>(),
};

}  // namespace

template <>
MatmulKernels VectorMatmuls<ThisIsa>::of_grids() {
  return list_of(kKernels);
}

}  // namespace akunu::cpu
