// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of 2 to 16 rows (blocks of 32):
// kernels/staged_rows.cuh
#include "cuda/kernels/staged_rows.cuh"
#include "metal/kernels/formats_32.cuh"

namespace gpu {

AKUNU_STAGED_ROWS(q4_0, Q4_0)
AKUNU_STAGED_ROWS(q4_1, Q4_1)
AKUNU_STAGED_ROWS(q5_0, Q5_0)
AKUNU_STAGED_ROWS(q5_1, Q5_1)
AKUNU_STAGED_ROWS(q8_0, Q8_0)

}  // namespace gpu
