// expert_matmul (blocks of 32)
#include "metal/kernels/expert_matvec.h"
#include "metal/kernels/formats_32.h"

AKUNU_EXPERT_MATVEC(q4_0, Q4_0)
AKUNU_EXPERT_MATVEC(q4_1, Q4_1)
AKUNU_EXPERT_MATVEC(q5_0, Q5_0)
AKUNU_EXPERT_MATVEC(q5_1, Q5_1)
AKUNU_EXPERT_MATVEC(q8_0, Q8_0)
