// matmul, matmul_add and matmul_group of many rows
#include "metal/kernels/formats_32.h"
#include "metal/kernels/gemm.h"

AKUNU_GEMM(q4_0, Q4_0)
AKUNU_GEMM(q4_1, Q4_1)
AKUNU_GEMM(q5_0, Q5_0)
AKUNU_GEMM(q5_1, Q5_1)
AKUNU_GEMM(q8_0, Q8_0)
