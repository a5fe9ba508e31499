// The matmul kernels of a vector level: a list per family of formats, each in a file of its own,
// which compile in parallel.
#pragma once

#include "cpu/kernels/matmul.h"

namespace akunu::cpu {

template <class Isa>
struct VectorMatmuls {
  static MatmulKernels of_floats_and_32();  // blocks of 32 weights
  static MatmulKernels of_k();              // super-blocks of 256
  static MatmulKernels of_tables();         // codes that are places in a table of 16 numbers
  static MatmulKernels of_grids();          // codes that are rows of a grid
  static MatmulKernels of_mlx();            // affine groups, and mxfp4 in planes
  static MatmulKernels of_int16();  // floats rounded to q16_32, at levels that multiply int16
};

}  // namespace akunu::cpu
