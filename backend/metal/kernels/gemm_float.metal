// matmul, matmul_add and matmul_group of many rows
#include "metal/kernels/formats.h"
#include "metal/kernels/gemm.h"

AKUNU_GEMM(f32, F32)
AKUNU_GEMM(f16, F16)
AKUNU_GEMM(bf16, BF16)
