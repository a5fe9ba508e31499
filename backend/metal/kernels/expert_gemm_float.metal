// expert_matmul of many rows (f32, f16, bf16)
#include "metal/kernels/expert_gemm.h"
#include "metal/kernels/formats.h"

AKUNU_EXPERT_GEMM(f32, F32)
AKUNU_EXPERT_GEMM(f16, F16)
AKUNU_EXPERT_GEMM(bf16, BF16)
