// prompts on warpgroups: blocks of 32, and numbers (kernels/warpgroup_matmul.cuh)
#include "cuda/kernels/warpgroup_matmul.cuh"

namespace gpu {

AKUNU_WARPGROUP_MATMULS(q4_0, Q4_0Weights)
AKUNU_WARPGROUP_MATMULS(q4_1, Q4_1Weights)
AKUNU_WARPGROUP_MATMULS(q5_0, Q5_0Weights)
AKUNU_WARPGROUP_MATMULS(q5_1, Q5_1Weights)
AKUNU_WARPGROUP_MATMULS(q8_0, Q8_0Weights)
AKUNU_WARPGROUP_MATMUL_OF(f16, F16Weights, 128)
AKUNU_WARPGROUP_MATMUL_OF(bf16, BF16Weights, 128)

}  // namespace gpu
