// prompts on warpgroups: K formats (kernels/warpgroup_matmul.cuh)
#include "cuda/kernels/warpgroup_matmul.cuh"

namespace gpu {

AKUNU_WARPGROUP_MATMUL_OF_FEW(q4_k, Q4_KWeights)
AKUNU_WARPGROUP_MATMUL_OF(q4_k, Q4_KWeights, 128)
// For tiles of 128 rows there are no registers beside what unpacking takes.
AKUNU_WARPGROUP_MATMUL_OF_FEW(q6_k, Q6_KWeights)

}  // namespace gpu
