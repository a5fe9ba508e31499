// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows (K
// formats)
#include "metal/kernels/formats_k.h"
#include "metal/kernels/matvec.h"

AKUNU_MATVEC(q2_k, Q2_K)
AKUNU_MATVEC(q3_k, Q3_K)
AKUNU_MATVEC(q4_k, Q4_K)
AKUNU_MATVEC(q5_k, Q5_K)
AKUNU_MATVEC(q6_k, Q6_K)
