// Chooses the matmuls of generated tokens that stream their weights through shared memory
// (kernels/streamed_rows.cuh, kernels/streamed_tile.cuh).
#pragma once

#include <cstdint>

#include "metal/kernel.h"

namespace akunu::cuda {

// What these kernels may use of a GPU.
struct StreamLimits {
  uint32_t block_bytes = 0;  // shared memory of a block at most
  uint32_t multiprocessors = 0;
};

// How a launch divides the shared memory of a block (StreamPlan of kernels/streamed_rows.cuh), and how many blocks share a
// multiprocessor. n_stages 0: there is no room.
struct StreamPlan {
  uint32_t n_stages = 0, chunk = 0, n_slots = 0, pass = 0;
  uint32_t blocks = 0, bytes = 0;
  // As the kernel reads it: eight bits each.
  uint32_t packed() const { return n_stages | chunk << 8 | n_slots << 16 | pass << 24; }
};

// For this many quads of input rows (0: one row), k and the bytes of 256 weights, if the launch has `tiles` tiles.
StreamPlan plan_stream(uint32_t quads, uint32_t k, uint32_t window_bytes, uint32_t tiles,
                       const StreamLimits& limits);

// Puts such kernels in the place of a kernel's launches, for one row as for several: a row has the same bits alone and
// among others. Which weights have them follows from their format and their shape: nine formats, k a multiple of 256 up to
// 65,280, as far as shared memory has room.
void put_on_streams(const KernelRequest& request, const StreamLimits& limits,
                    metal::Kernel& kernel);

}  // namespace akunu::cuda
