// The kernels of streamed_matmul.cuh for the K formats.
#include "cuda/kernels/streamed_matmul.cuh"

namespace gpu {

AKUNU_STREAMED_MATMUL(q3_k, Q3_KStreamed)
AKUNU_STREAMED_MATMUL(q4_k, Q4_KStreamed)
AKUNU_STREAMED_MATMUL(q5_k, Q5_KStreamed)
AKUNU_STREAMED_MATMUL(q6_k, Q6_KStreamed)

}  // namespace gpu
