// expert_matmul of many rows (codes that are places in a table)
#include "metal/kernels/expert_gemm.h"
#include "metal/kernels/formats_table.h"

AKUNU_EXPERT_GEMM(iq4_nl, IQ4_NL)
AKUNU_EXPERT_GEMM(iq4_xs, IQ4_XS)
AKUNU_EXPERT_GEMM(mxfp4, MXFP4)
AKUNU_EXPERT_GEMM(nvfp4, NVFP4)
