// matmul, matmul_add and matmul_group of many rows
#include "metal/kernels/formats_mlx.h"
#include "metal/kernels/gemm.h"

AKUNU_GEMM(mlx4, MLX4)
AKUNU_GEMM(mlx8, MLX8)
