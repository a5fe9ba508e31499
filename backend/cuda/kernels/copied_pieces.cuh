// How the threads that copy weight rows divide the 16-byte pieces of the rows. A lane copies the same piece of every row that it
// has a part in, so that an address takes few instructions: a warp issues one instruction at a time, and computing addresses took
// longer than the tile's products.
#pragma once

#include "cuda/kernels/warpgroup.cuh"

namespace gpu {

// Rows of kPieces pieces, copied by kThreads threads: a lane has rows `row`, row + kStep and so on.
template <uint kPieces, uint kThreads>
struct CopiedPiece {
  static constexpr uint kRowsOfWarp = 32 / kPieces, kStep = kRowsOfWarp * kThreads / 32;
  uint row, offset;  // the first row; bytes from the beginning of a row to the piece
  bool is_there;     // some lanes of a warp may have nothing to copy
  // The piece of thread `index`.
  AKUNU_DEVICE static CopiedPiece of(uint index) {
    const uint lane = index % 32;
    return {index / 32 * kRowsOfWarp + lane / kPieces, 16 * (lane % kPieces),
            lane < kRowsOfWarp * kPieces};
  }
};

}  // namespace gpu
