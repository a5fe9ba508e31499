// prompts on warpgroups: K formats (kernels/warpgroup_matmul.h)
#include "cuda/kernels/warpgroup_matmul.h"

AKUNU_WARPGROUP_MATMUL(q4_k, Q4_KWeights)
// For tiles of 256 rows there are no registers beside what unpacking takes.
AKUNU_WARPGROUP_MATMUL_OF(q6_k, Q6_KWeights, 1)
