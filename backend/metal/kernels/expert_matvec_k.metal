// expert_matmul (K formats)
#include "metal/kernels/expert_matvec.h"
#include "metal/kernels/formats_k.h"

AKUNU_EXPERT_MATVEC(q2_k, Q2_K)
AKUNU_EXPERT_MATVEC(q3_k, Q3_K)
AKUNU_EXPERT_MATVEC(q4_k, Q4_K)
AKUNU_EXPERT_MATVEC(q5_k, Q5_K)
AKUNU_EXPERT_MATVEC(q6_k, Q6_K)
