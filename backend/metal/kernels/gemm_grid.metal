// matmul, matmul_add and matmul_group of many rows (codes that are rows of a grid)
#include "metal/kernels/formats_grid.h"
#include "metal/kernels/gemm.h"

AKUNU_GEMM(iq2_xxs, IQ2_XXS)
AKUNU_GEMM(iq2_xs, IQ2_XS)
AKUNU_GEMM(iq2_s, IQ2_S)
AKUNU_GEMM(iq3_xxs, IQ3_XXS)
AKUNU_GEMM(iq3_s, IQ3_S)
