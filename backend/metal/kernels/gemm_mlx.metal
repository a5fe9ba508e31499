// matmul, matmul_add and matmul_group of many rows
#include "metal/kernels/formats_mlx.h"
#include "metal/kernels/gemm.h"

AKUNU_GEMM(mlx4_64, MLX4)
AKUNU_GEMM(mlx8_64, MLX8)
AKUNU_GEMM(mlx4_64_bf16, MLX4_BF16)
AKUNU_GEMM(mlx8_64_bf16, MLX8_BF16)
