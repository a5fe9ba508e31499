// prompts on warpgroups: K formats (kernels/warpgroup_matmul.cuh)
#include "cuda/kernels/warpgroup_matmul.cuh"

namespace gpu {

AKUNU_WARPGROUP_MATMULS(q3_k, Q3_KWeights)
AKUNU_WARPGROUP_MATMULS(q4_k, Q4_KWeights)
AKUNU_WARPGROUP_MATMULS(q5_k, Q5_KWeights)
AKUNU_WARPGROUP_MATMULS(q6_k, Q6_KWeights)

}  // namespace gpu
