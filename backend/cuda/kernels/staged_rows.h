// Matmuls of 2 to 16 rows whose input a launch of its own stages in the command's workspace: as lanes read it and times
// the norm's weights (multiply_rows.h, 4). A warp takes two weight rows and four input rows.
//
// Floor: the weights' bytes, once for up to 16 rows. Of each run of 16 a row's numbers are four loads of 512
// neighbouring bytes for a warp. Four weight rows for each load need 168 registers: fewer warps, and slower.
#pragma once

#include "metal/kernels/matvec.h"

// Of one run of a row. Grid: the runs of a row, rows.
template <class F>
inline void stage_run_of_row(device const float* input, device const float* norm, bool normalise,
                             device float* to, constant PassRange& pass, uint k, uint3 position) {
  if (position.x >= k / 16) return;
  const ulong row = pass.first_row + position.y;
  stage_run<F>(Staged::at(to + row * Staged::floats(k), k / 32), input + row * k, norm, normalise,
               k, position.x);
}

template <class F>
[[kernel]] void stage_rows(device const float* input [[buffer(0)]],
                           constant PassRange& pass [[buffer(23)]], device float* to [[buffer(24)]],
                           constant MatmulParams& params [[buffer(25)]],
                           uint3 position [[thread_position_in_grid]]) {
  stage_run_of_row<F>(input, input, false, to, pass, params.k, position);
}

template <class F>
[[kernel]] void stage_rows_of_group(device const float* input [[buffer(0)]],
                                    device const float* norm
                                    [[buffer(10), function_constant(kIsBound10)]],
                                    constant PassRange& pass [[buffer(23)]],
                                    device float* to [[buffer(24)]],
                                    constant uint* params [[buffer(25)]],
                                    uint3 position [[thread_position_in_grid]]) {
  device const float* norm_weight = input;
  if (kIsBound10) norm_weight = norm;
  stage_run_of_row<F>(input, norm_weight, kIsBound10, to, pass, params[0], position);
}

template <class F>
[[kernel]] void stage_rows_of_gated(device const float* input [[buffer(0)]],
                                    device const float* norm [[buffer(3)]],
                                    constant PassRange& pass [[buffer(23)]],
                                    device float* to [[buffer(24)]],
                                    constant NormGatedMatmulParams& params [[buffer(25)]],
                                    uint3 position [[thread_position_in_grid]]) {
  stage_run_of_row<F>(input, norm, true, to, pass, params.k, position);
}

#define AKUNU_STAGES_ROWS(kind, name, F) \
  template [[host_name(#kind "_" #name)]] [[kernel]] decltype(kind<F>) kind<F>;
#define AKUNU_TAKES_STAGED_ROWS(kind, name, F) \
  template [[host_name("rows_" #kind "_" #name)]] [[kernel]] decltype(kind<F, 4>) kind<F, 4>;
#define AKUNU_STAGED_ROWS(name, F)                                                              \
  AKUNU_STAGES_ROWS(stage_rows, name, F)                                                        \
  AKUNU_STAGES_ROWS(stage_rows_of_group, name, F)                                               \
  AKUNU_STAGES_ROWS(stage_rows_of_gated, name, F)                                               \
  AKUNU_TAKES_STAGED_ROWS(matvec, name, F)                                                      \
  template [[host_name("rows_matvec_group_" #name)]] [[kernel]] decltype(matvec_group<F, F, 4>) \
      matvec_group<F, F, 4>;                                                                    \
  AKUNU_TAKES_STAGED_ROWS(matvec_gated, name, F)
