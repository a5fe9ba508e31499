// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows
// (blocks of 32)
#include "metal/kernels/formats_32.h"
#include "metal/kernels/matvec.h"

AKUNU_MATVEC(q4_0, Q4_0)
AKUNU_MATVEC(q4_1, Q4_1)
AKUNU_MATVEC(q5_0, Q5_0)
AKUNU_MATVEC(q5_1, Q5_1)
AKUNU_MATVEC(q8_0, Q8_0)
