// The kernels of streamed_tile_matmul.cuh for formats with blocks of 256.
#include "cuda/kernels/streamed_tile_matmul.cuh"

namespace gpu {

AKUNU_STREAMED_TILES(q3_k, Q3_KStreamed)
AKUNU_STREAMED_TILES(q4_k, Q4_KStreamed)
AKUNU_STREAMED_TILES(q5_k, Q5_KStreamed)
AKUNU_STREAMED_TILES(q6_k, Q6_KStreamed)

}  // namespace gpu
