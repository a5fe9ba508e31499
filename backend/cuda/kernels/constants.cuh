// Function constants and shared memory of a launch.
#pragma once

#include "cuda/kernels/language.cuh"

namespace gpu {
namespace metal {}  // namespace metal

struct AkunuConstants {
  uint32_t values[8];
};
// By index, as the launch says them (launch.cuh); each block has a copy, which its first threads fill before anything else runs.
static __shared__ AkunuConstants akunu_constants;
extern __shared__ __align__(16) unsigned char akunu_shared[];

// Whether the launch says that its blocks are one SIMD-group each.
__device__ inline bool is_wide() { return akunu_constants.values[6] != 0; }

}  // namespace gpu
