#include "cuda/launch_shape.h"

#include "core/kernel_params.h"

namespace akunu::cuda {

using metal::divide_up;

uint32_t constant_of(const metal::Launch& launch, uint32_t index) {
  for (const metal::FunctionConstant& constant : launch.constants)
    if (constant.index == index) return constant.value;
  return 0;
}

uint32_t pieces_of(const KernelRequest& request, const metal::Launch& launch, uint32_t outputs) {
  switch (request.operation) {
    case Operation::norm_gated_matmul: {
      const bool both = constant_of(launch, metal::kConstantPart) == 0;
      return divide_up(request.params.get<NormGatedMatmulParams>().n, both ? outputs / 2 : outputs);
    }
    case Operation::matmul_group:
    case Operation::norm_matmul_group: {
      const auto* group = reinterpret_cast<const MatmulGroupParams*>(request.params.data());
      uint32_t pieces = 0;
      for (uint32_t m = 0; m < kMaxGroup; ++m)
        if (constant_of(launch, metal::kConstantMembers) >> m & 1u)
          pieces += divide_up(group->n[m], outputs);
      return pieces;
    }
    default:
      return divide_up(request.params.get<MatmulParams>().n, outputs);
  }
}

uint32_t inputs_of(const KernelRequest& request) {
  switch (request.operation) {
    case Operation::matmul:
    case Operation::matmul_add:
      return request.params.get<MatmulParams>().k;
    case Operation::matmul_group:
      return request.params.get<MatmulGroupParams>().k;
    case Operation::norm_matmul_group:
      return request.params.get<NormMatmulGroupParams>().k;
    case Operation::norm_gated_matmul:
      return request.params.get<NormGatedMatmulParams>().k;
    default:
      return 0;
  }
}

}  // namespace akunu::cuda
