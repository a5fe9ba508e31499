// matmul, matmul_add, matmul_group, matmul_rope_kv_write and gated_matmul on vectors; see matmul.h.
#include "cpu/isa/isa.h"
#include "cpu/kernels/find_matmul.h"
#include "cpu/kernels/gated_matmul.h"
#include "cpu/kernels/matmul_kernels.h"

namespace akunu::cpu {

template <>
bool Families<ThisIsa>::find_matmul(const KernelKey& request, Kernel& kernel) {
  const MatmulKernels known[] = {
      VectorMatmuls<ThisIsa>::of_floats_and_32(), VectorMatmuls<ThisIsa>::of_k(),
      VectorMatmuls<ThisIsa>::of_tables(),        VectorMatmuls<ThisIsa>::of_grids(),
      VectorMatmuls<ThisIsa>::of_mlx(),           VectorMatmuls<ThisIsa>::of_int16()};
  if (request.operation != Operation::gated_matmul)
    return find_matmul_in<ThisIsa>(known, request, kernel);
  if (request.activation == F32Activation<ThisIsa>::kKind)
    return GatedMatmul<ThisIsa, F32Activation<ThisIsa>>::find(known, request, kernel);
  if (request.activation == Q16Activation<ThisIsa>::kKind)
    return GatedMatmul<ThisIsa, Q16Activation<ThisIsa>>::find(known, request, kernel);
  return GatedMatmul<ThisIsa, Q8Activation<ThisIsa>>::find(known, request, kernel);
}

}  // namespace akunu::cpu
