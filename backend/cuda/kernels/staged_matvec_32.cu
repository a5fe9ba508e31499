// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of one row, of large weights
// (blocks of 32): kernels/multiply_rows.cuh, 3
#include "cuda/kernels/staged_matvec.cuh"
#include "metal/kernels/formats_32.cuh"

namespace gpu {

AKUNU_STAGED_MATVEC(q4_0, Q4_0)
AKUNU_STAGED_MATVEC(q4_1, Q4_1)
AKUNU_STAGED_MATVEC(q5_0, Q5_0)
AKUNU_STAGED_MATVEC(q5_1, Q5_1)
AKUNU_STAGED_MATVEC(q8_0, Q8_0)

}  // namespace gpu
