// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows (MLX's
// formats)
#include "metal/kernels/formats_mlx.h"
#include "metal/kernels/matvec.h"

AKUNU_MATVEC(mlx2, MLX2)
AKUNU_MATVEC(mlx3, MLX3)
AKUNU_MATVEC(mlx4, MLX4)
AKUNU_MATVEC(mlx5, MLX5)
AKUNU_MATVEC(mlx6, MLX6)
AKUNU_MATVEC(mlx8, MLX8)
AKUNU_MATVEC(mlx2_bf16, MLX2_BF16)
AKUNU_MATVEC(mlx3_bf16, MLX3_BF16)
AKUNU_MATVEC(mlx4_bf16, MLX4_BF16)
AKUNU_MATVEC(mlx5_bf16, MLX5_BF16)
AKUNU_MATVEC(mlx6_bf16, MLX6_BF16)
AKUNU_MATVEC(mlx8_bf16, MLX8_BF16)
AKUNU_MATVEC(mlx2_f32, MLX2_F32)
AKUNU_MATVEC(mlx3_f32, MLX3_F32)
AKUNU_MATVEC(mlx4_f32, MLX4_F32)
AKUNU_MATVEC(mlx5_f32, MLX5_F32)
AKUNU_MATVEC(mlx6_f32, MLX6_F32)
AKUNU_MATVEC(mlx8_f32, MLX8_F32)
AKUNU_MATVEC(mlx_mxfp4, MLX_MXFP4)
