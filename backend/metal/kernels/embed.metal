// embed, in every format
#include "metal/kernels/embed.h"
#include "metal/kernels/formats_32.h"
#include "metal/kernels/formats_k.h"
#include "metal/kernels/formats_mlx.h"

AKUNU_EMBED(f32, F32)
AKUNU_EMBED(f16, F16)
AKUNU_EMBED(bf16, BF16)
AKUNU_EMBED(q4_0, Q4_0)
AKUNU_EMBED(q4_1, Q4_1)
AKUNU_EMBED(q5_0, Q5_0)
AKUNU_EMBED(q5_1, Q5_1)
AKUNU_EMBED(q8_0, Q8_0)
AKUNU_EMBED(q2_k, Q2_K)
AKUNU_EMBED(q3_k, Q3_K)
AKUNU_EMBED(q4_k, Q4_K)
AKUNU_EMBED(q5_k, Q5_K)
AKUNU_EMBED(q6_k, Q6_K)
AKUNU_EMBED(mlx4_64, MLX4)
AKUNU_EMBED(mlx8_64, MLX8)
AKUNU_EMBED(mlx4_64_bf16, MLX4_BF16)
AKUNU_EMBED(mlx8_64_bf16, MLX8_BF16)
