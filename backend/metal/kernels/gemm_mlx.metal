// matmul, matmul_add and matmul_group of many rows
#include "metal/kernels/formats_mlx.h"
#include "metal/kernels/gemm.h"

AKUNU_GEMM(mlx2, MLX2)
AKUNU_GEMM(mlx3, MLX3)
AKUNU_GEMM(mlx4, MLX4)
AKUNU_GEMM(mlx5, MLX5)
AKUNU_GEMM(mlx6, MLX6)
AKUNU_GEMM(mlx8, MLX8)
AKUNU_GEMM(mlx2_bf16, MLX2_BF16)
AKUNU_GEMM(mlx3_bf16, MLX3_BF16)
AKUNU_GEMM(mlx4_bf16, MLX4_BF16)
AKUNU_GEMM(mlx5_bf16, MLX5_BF16)
AKUNU_GEMM(mlx6_bf16, MLX6_BF16)
AKUNU_GEMM(mlx8_bf16, MLX8_BF16)
AKUNU_GEMM(mlx2_f32, MLX2_F32)
AKUNU_GEMM(mlx3_f32, MLX3_F32)
AKUNU_GEMM(mlx4_f32, MLX4_F32)
AKUNU_GEMM(mlx5_f32, MLX5_F32)
AKUNU_GEMM(mlx6_f32, MLX6_F32)
AKUNU_GEMM(mlx8_f32, MLX8_F32)
AKUNU_GEMM(mlx_mxfp4, MLX_MXFP4)
