// expert_matmul (f32, f16, bf16)
#include "metal/kernels/expert_matvec.h"
#include "metal/kernels/formats.h"

AKUNU_EXPERT_MATVEC(f32, F32)
AKUNU_EXPERT_MATVEC(f16, F16)
AKUNU_EXPERT_MATVEC(bf16, BF16)
