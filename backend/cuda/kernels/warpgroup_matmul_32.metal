// prompts on warpgroups: blocks of 32, and numbers (kernels/warpgroup_matmul.h)
#include "cuda/kernels/warpgroup_matmul.h"

AKUNU_WARPGROUP_MATMUL(q4_0, Q4_0Weights)
AKUNU_WARPGROUP_MATMUL(q8_0, Q8_0Weights)
AKUNU_WARPGROUP_MATMUL(f16, F16Weights)
AKUNU_WARPGROUP_MATMUL(bf16, BF16Weights)
