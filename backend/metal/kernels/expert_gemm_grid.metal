// expert_matmul of many rows (codes that are rows of a grid)
#include "metal/kernels/expert_gemm.h"
#include "metal/kernels/formats_grid.h"

AKUNU_EXPERT_GEMM(iq2_xxs, IQ2_XXS)
AKUNU_EXPERT_GEMM(iq2_xs, IQ2_XS)
AKUNU_EXPERT_GEMM(iq2_s, IQ2_S)
AKUNU_EXPERT_GEMM(iq3_xxs, IQ3_XXS)
AKUNU_EXPERT_GEMM(iq3_s, IQ3_S)
