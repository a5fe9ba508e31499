// The kernels of streamed_matmul.cuh for formats with blocks of 32, and those that quantise several input rows.
#include "cuda/kernels/streamed_matmul.cuh"

namespace gpu {

AKUNU_STREAMED_MATMUL(q4_0, Q4_0Streamed)
AKUNU_STREAMED_MATMUL(q4_1, Q4_1Streamed)
AKUNU_STREAMED_MATMUL(q5_0, Q5_0Streamed)
AKUNU_STREAMED_MATMUL(q5_1, Q5_1Streamed)
AKUNU_STREAMED_MATMUL(q8_0, Q8_0Streamed)
AKUNU_ROUND_ROWS(1)
AKUNU_ROUND_ROWS(2)
AKUNU_ROUND_ROWS(4)
AKUNU_ROUND_ROWS(8)
AKUNU_ROUND_ROWS(16)

}  // namespace gpu
