// expert_matmul (MLX's groups of 64)
#include "metal/kernels/expert_matvec.h"
#include "metal/kernels/formats_mlx.h"

AKUNU_EXPERT_MATVEC(mlx4_64, MLX4)
AKUNU_EXPERT_MATVEC(mlx8_64, MLX8)
AKUNU_EXPERT_MATVEC(mlx4_64_bf16, MLX4_BF16)
AKUNU_EXPERT_MATVEC(mlx8_64_bf16, MLX8_BF16)
