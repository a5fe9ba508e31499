// matmul, matmul_add and matmul_group of many rows
#include "metal/kernels/formats_k.h"
#include "metal/kernels/gemm.h"

AKUNU_GEMM(q2_k, Q2_K)
AKUNU_GEMM(q3_k, Q3_K)
AKUNU_GEMM(q4_k, Q4_K)
AKUNU_GEMM(q5_k, Q5_K)
AKUNU_GEMM(q6_k, Q6_K)
