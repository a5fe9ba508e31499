// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows
// (codes that are places in a table)
#include "metal/kernels/formats_table.h"
#include "metal/kernels/matvec.h"

AKUNU_MATVEC(iq4_nl, IQ4_NL)
AKUNU_MATVEC(iq4_xs, IQ4_XS)
AKUNU_MATVEC(mxfp4, MXFP4)
AKUNU_MATVEC(nvfp4, NVFP4)
