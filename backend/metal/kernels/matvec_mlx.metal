// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows (MLX's
// groups of 64)
#include "metal/kernels/formats_mlx.h"
#include "metal/kernels/matvec.h"

AKUNU_MATVEC(mlx4_64, MLX4)
AKUNU_MATVEC(mlx8_64, MLX8)
AKUNU_MATVEC(mlx4_64_bf16, MLX4_BF16)
AKUNU_MATVEC(mlx8_64_bf16, MLX8_BF16)
