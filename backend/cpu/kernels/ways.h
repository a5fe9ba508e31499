// The ways of vectors to multiply a weight, in files that compile side by side.
#pragma once

#include "cpu/kernels/matmul.h"

namespace akunu::cpu {

template <class Isa>
struct VectorWays {
  static MatmulWays of_floats_and_32();  // blocks of 32 weights
  static MatmulWays of_k();              // super-blocks of 256
  static MatmulWays of_mlx();            // affine groups of 64
  static MatmulWays of_coded();          // floats rounded to q16_32, at levels with words for it
};

}  // namespace akunu::cpu
