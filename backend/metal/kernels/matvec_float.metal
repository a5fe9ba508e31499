// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows (f32,
// f16, bf16)
#include "metal/kernels/formats.h"
#include "metal/kernels/matvec.h"

AKUNU_MATVEC(f32, F32)
AKUNU_MATVEC(f16, F16)
AKUNU_MATVEC(bf16, BF16)
