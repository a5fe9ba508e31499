// matmul, matmul_add, matmul_group, matmul_rope_kv_write and gated_matmul of an input in bf16, on a
// matrix unit.
#include "cpu/isa/isa.h"
#include "cpu/kernels/find_matmul.h"
#include "cpu/kernels/formats_grid.h"
#include "cpu/kernels/formats_table.h"
#include "cpu/kernels/tiles/gated_matmul.h"
#include "cpu/kernels/tiles/table.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
constexpr KernelEntry gated() {
  return TileGatedMatmul<ThisIsa, Format<ThisIsa>>::entry();
}

constexpr KernelEntry kGated[] = {
    gated<F16>(),   gated<BF16>(),    gated<Q4_0>(),   gated<Q4_1>(),   gated<Q5_0>(),
    gated<Q5_1>(),  gated<Q8_0>(),    gated<Q2_K>(),   gated<Q3_K>(),   gated<Q4_K>(),
    gated<Q5_K>(),  gated<Q6_K>(),    gated<IQ4_NL>(), gated<IQ4_XS>(), gated<MXFP4>(),
    gated<NVFP4>(), gated<IQ2_XXS>(), gated<IQ2_XS>(), gated<IQ2_S>(),  gated<IQ3_XXS>(),
    gated<IQ3_S>(),
};

template <template <class> class Format>
constexpr MatmulKernel kernel() {
  return matmul_kernel<TileMultiply<ThisIsa, Format<ThisIsa>>>();
}

// Not of float32: two numbers in bf16 have 16 of its 24 bits.
constexpr MatmulKernel kKernels[] = {
    kernel<F16>(),   kernel<BF16>(),    kernel<Q4_0>(),   kernel<Q4_1>(),   kernel<Q5_0>(),
    kernel<Q5_1>(),  kernel<Q8_0>(),    kernel<Q2_K>(),   kernel<Q3_K>(),   kernel<Q4_K>(),
    kernel<Q5_K>(),  kernel<Q6_K>(),    kernel<IQ4_NL>(), kernel<IQ4_XS>(), kernel<MXFP4>(),
    kernel<NVFP4>(), kernel<IQ2_XXS>(), kernel<IQ2_XS>(), kernel<IQ2_S>(),  kernel<IQ3_XXS>(),
    kernel<IQ3_S>(),
};

}  // namespace

template <>
bool TileFamilies<ThisIsa>::find_matmul(const KernelKey& request, Kernel& kernel) {
  const MatmulKernels known[] = {list_of(kKernels)};
  return find_matmul_in<ThisIsa>(known, request, kernel);
}

template <>
KernelList TileFamilies<ThisIsa>::gated_matmul() {
  return list_of(kGated);
}

}  // namespace akunu::cpu
