// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows
// (codes that are rows of a grid)
#include "metal/kernels/formats_grid.h"
#include "metal/kernels/matvec.h"

AKUNU_MATVEC(iq2_xxs, IQ2_XXS)
AKUNU_MATVEC(iq2_xs, IQ2_XS)
AKUNU_MATVEC(iq2_s, IQ2_S)
AKUNU_MATVEC(iq3_xxs, IQ3_XXS)
AKUNU_MATVEC(iq3_s, IQ3_S)
