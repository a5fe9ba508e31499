// prompts on warpgroups: blocks of 32, and numbers (kernels/warpgroup_matmul.cuh)
#include "cuda/kernels/warpgroup_matmul.cuh"

namespace gpu {

AKUNU_WARPGROUP_MATMUL_OF_FEW(q4_0, Q4_0Weights)
AKUNU_WARPGROUP_MATMUL_OF(q4_0, Q4_0Weights, 128)
AKUNU_WARPGROUP_MATMUL_OF_FEW(q8_0, Q8_0Weights)
AKUNU_WARPGROUP_MATMUL_OF(q8_0, Q8_0Weights, 128)
AKUNU_WARPGROUP_MATMUL_OF(f16, F16Weights, 128)
AKUNU_WARPGROUP_MATMUL_OF(bf16, BF16Weights, 128)

}  // namespace gpu
