// Matmuls of one row whose blocks put the input into shared memory (multiply_rows.cuh, 3): a warp takes four weight rows at a time,
// or two where there are few. A block goes on with further threadgroups of the grid.
#pragma once

#define AKUNU_BLOCKS_STAGE
#include "cuda/kernels/matvec_operands.cuh"

namespace gpu {

// `...` is the kernel of matvec.h. (Registers for two blocks: kStagedWords.)
#define AKUNU_STAGED(kind, name, outputs, ...)                                                    \
  AKUNU_KERNEL(staged_##kind##_##name##_o##outputs, __launch_bounds__(256, 2)) {                  \
    copy_constants(launch);                                                                       \
    is_staged() = false;                                                                          \
    __syncthreads();                                                                              \
    for (uint group = blockIdx.x; group < n_groups(); group += gridDim.x)                         \
      __VA_ARGS__(launch.slot(0), AKUNU_OPERANDS_OF_##kind, uint3(group, blockIdx.y, blockIdx.z), \
                  threadIdx.x / 32, (blockDim.x + 31) / 32, threadIdx.x % 32);                    \
  }
#define AKUNU_STAGED_MATVEC(name, F)                            \
  AKUNU_STAGED(matvec, name, 2, matvec<F, 1, 2>)                \
  AKUNU_STAGED(matvec, name, 4, matvec<F, 1, 4>)                \
  AKUNU_STAGED(matvec_group, name, 2, matvec_group<F, F, 1, 2>) \
  AKUNU_STAGED(matvec_group, name, 4, matvec_group<F, F, 1, 4>) \
  AKUNU_STAGED(matvec_gated, name, 2, matvec_gated<F, 1, 2>)    \
  AKUNU_STAGED(matvec_gated, name, 4, matvec_gated<F, 1, 4>)

}  // namespace gpu
