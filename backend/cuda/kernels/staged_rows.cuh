// Matmuls of 2 to 16 rows whose input a launch of its own stages in the command's workspace: as lanes read it and times
// the norm's weights (multiply_rows.cuh, 4). A warp takes two weight rows and four input rows.
//
// Floor: the weights' bytes, once for up to 16 rows. Of each run of 16 a row's numbers are four loads of 512
// neighbouring bytes for a warp. Four weight rows for each load need 168 registers: fewer warps, and slower.
#pragma once

#define AKUNU_ROWS_ARE_STAGED
#include "cuda/kernels/matvec_operands.cuh"

namespace gpu {

// Of one run of a row. Grid: the runs of a row, rows.
template <class F>
__device__ inline void stage_run_of_row(const float* input, const float* norm, bool normalise,
                                        float* to, const PassRange& pass, uint k, uint3 position) {
  if (position.x >= k / 16) return;
  const ulong row = pass.first_row + position.y;
  stage_run<F>(Staged::at(to + row * Staged::floats(k), k / 32), input + row * k, norm, normalise,
               k, position.x);
}

template <class F>
__device__ void stage_rows(const float* input, const PassRange& pass, float* to,
                           const MatmulParams& params, uint3 position) {
  stage_run_of_row<F>(input, input, false, to, pass, params.k, position);
}

template <class F>
__device__ void stage_rows_of_group(const float* input, const float* norm, const PassRange& pass,
                                    float* to, const uint* params, uint3 position) {
  const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  stage_run_of_row<F>(input, norm_weight, kIsBound10, to, pass, params[0], position);
}

template <class F>
__device__ void stage_rows_of_gated(const float* input, const float* norm, const PassRange& pass,
                                    float* to, const NormGatedMatmulParams& params,
                                    uint3 position) {
  stage_run_of_row<F>(input, norm, true, to, pass, params.k, position);
}

// `...` is the kernel of matvec.h; its input is in the command's workspace.
#define AKUNU_TAKES_STAGED_ROWS(kind, name, ...)                                            \
  AKUNU_KERNEL(rows_##kind##_##name, __launch_bounds__(128, 4)) {                           \
    take_constants(launch);                                                                 \
    __VA_ARGS__(launch.slot(24), AKUNU_OPERANDS_OF_##kind, block_index(),                   \
                is_wide() ? 0u : threadIdx.x / 32, is_wide() ? 1u : (blockDim.x + 31) / 32, \
                is_wide() ? threadIdx.x : threadIdx.x % 32);                                \
  }
#define AKUNU_STAGED_ROWS(name, F)                                                          \
  AKUNU_KERNEL(stage_rows_##name, ) {                                                       \
    inputs_ready();                                                                         \
    stage_rows<F>(launch.slot(0), launch.pass(), launch.slot(24), launch.parameters(),      \
                  thread_position());                                                       \
  }                                                                                         \
  AKUNU_KERNEL(stage_rows_of_group_##name, ) {                                              \
    take_constants(launch);                                                                 \
    inputs_ready();                                                                         \
    stage_rows_of_group<F>(launch.slot(0), launch.slot(10), launch.pass(), launch.slot(24), \
                           launch.numbers(), thread_position());                            \
  }                                                                                         \
  AKUNU_KERNEL(stage_rows_of_gated_##name, ) {                                              \
    inputs_ready();                                                                         \
    stage_rows_of_gated<F>(launch.slot(0), launch.slot(3), launch.pass(), launch.slot(24),  \
                           launch.parameters(), thread_position());                         \
  }                                                                                         \
  AKUNU_TAKES_STAGED_ROWS(matvec, name, matvec<F, 4>)                                       \
  AKUNU_TAKES_STAGED_ROWS(matvec_group, name, matvec_group<F, F, 4>)                        \
  AKUNU_TAKES_STAGED_ROWS(matvec_gated, name, matvec_gated<F, 4>)

}  // namespace gpu
