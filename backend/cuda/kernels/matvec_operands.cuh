// What kernels of NVIDIA's GPUs hand to those of metal/kernels/matvec.h, between the input and where a warp works.
#pragma once

#include "cuda/kernels/launch.cuh"
#include "metal/kernels/matvec.cuh"

#define AKUNU_OPERANDS_OF_matvec                                                   \
  launch.slot(1), launch.slot(2), launch.slot(14), launch.slot(15), launch.pass(), \
      launch.parameters()
#define AKUNU_OPERANDS_OF_matvec_group                                                            \
  launch.slot(1), launch.slot(2), launch.slot(3), launch.slot(4), launch.slot(5), launch.slot(6), \
      launch.slot(7), launch.slot(8), launch.slot(9), launch.slot(10), launch.slot(14),           \
      launch.slot(15), launch.slot(17), launch.slot(18), launch.slot(20), launch.slot(21),        \
      launch.pass(), launch.numbers()
#define AKUNU_OPERANDS_OF_matvec_gated                                             \
  launch.slot(1), launch.slot(2), launch.slot(3), launch.slot(4), launch.slot(14), \
      launch.slot(15), launch.slot(17), launch.slot(18), launch.pass(), launch.parameters()
