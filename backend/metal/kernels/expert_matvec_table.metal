// expert_matmul (codes that are places in a table)
#include "metal/kernels/expert_matvec.h"
#include "metal/kernels/formats_table.h"

AKUNU_EXPERT_MATVEC(iq4_nl, IQ4_NL)
AKUNU_EXPERT_MATVEC(iq4_xs, IQ4_XS)
AKUNU_EXPERT_MATVEC(mxfp4, MXFP4)
AKUNU_EXPERT_MATVEC(nvfp4, NVFP4)
