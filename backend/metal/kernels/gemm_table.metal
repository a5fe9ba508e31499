// matmul, matmul_add and matmul_group of many rows (codes that are places in a table)
#include "metal/kernels/formats_table.h"
#include "metal/kernels/gemm.h"

AKUNU_GEMM(iq4_nl, IQ4_NL)
AKUNU_GEMM(iq4_xs, IQ4_XS)
AKUNU_GEMM(mxfp4, MXFP4)
AKUNU_GEMM(nvfp4, NVFP4)
