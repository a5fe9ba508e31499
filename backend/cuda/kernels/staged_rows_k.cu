// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of 2 to 16 rows (k-quants):
// kernels/staged_rows.cuh
#include "cuda/kernels/staged_rows.cuh"
#include "metal/kernels/formats_k.cuh"

namespace gpu {

AKUNU_STAGED_ROWS(q2_k, Q2_K)
AKUNU_STAGED_ROWS(q3_k, Q3_K)
AKUNU_STAGED_ROWS(q4_k, Q4_K)
AKUNU_STAGED_ROWS(q5_k, Q5_K)
AKUNU_STAGED_ROWS(q6_k, Q6_K)

}  // namespace gpu
