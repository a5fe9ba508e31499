// The kernels of streamed_tile_matmul.cuh for formats with blocks of 32.
#include "cuda/kernels/streamed_tile_matmul.cuh"

namespace gpu {

AKUNU_STREAMED_TILES(q4_0, Q4_0Streamed)
AKUNU_STREAMED_TILES(q4_1, Q4_1Streamed)
AKUNU_STREAMED_TILES(q5_0, Q5_0Streamed)
AKUNU_STREAMED_TILES(q5_1, Q5_1Streamed)
AKUNU_STREAMED_TILES(q8_0, Q8_0Streamed)

}  // namespace gpu
