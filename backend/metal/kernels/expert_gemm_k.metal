// expert_matmul of many rows (K formats)
#include "metal/kernels/expert_gemm.h"
#include "metal/kernels/formats_k.h"

AKUNU_EXPERT_GEMM(q2_k, Q2_K)
AKUNU_EXPERT_GEMM(q3_k, Q3_K)
AKUNU_EXPERT_GEMM(q4_k, Q4_K)
AKUNU_EXPERT_GEMM(q5_k, Q5_K)
AKUNU_EXPERT_GEMM(q6_k, Q6_K)
