// expert_matmul of many rows (blocks of 32)
#include "metal/kernels/expert_gemm.h"
#include "metal/kernels/formats_32.h"

AKUNU_EXPERT_GEMM(q4_0, Q4_0)
AKUNU_EXPERT_GEMM(q4_1, Q4_1)
AKUNU_EXPERT_GEMM(q5_0, Q5_0)
AKUNU_EXPERT_GEMM(q5_1, Q5_1)
AKUNU_EXPERT_GEMM(q8_0, Q8_0)
