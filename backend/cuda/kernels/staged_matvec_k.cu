// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of one row, of large weights
// (k-quants): kernels/multiply_rows.cuh, 3
#include "cuda/kernels/staged_matvec.cuh"
#include "metal/kernels/formats_k.cuh"

namespace gpu {

AKUNU_STAGED_MATVEC(q2_k, Q2_K)
AKUNU_STAGED_MATVEC(q3_k, Q3_K)
AKUNU_STAGED_MATVEC(q4_k, Q4_K)
AKUNU_STAGED_MATVEC(q5_k, Q5_K)
AKUNU_STAGED_MATVEC(q6_k, Q6_K)

}  // namespace gpu
