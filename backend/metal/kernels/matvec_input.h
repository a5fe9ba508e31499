// What a SIMD-group of matvec.h reads of the input, and for which rows and outputs it works.
#pragma once

#include "metal/kernels/formats.h"

// A name of its own, so that an array of them can lie in another address space.
using Input = device const float*;

// The numbers of an input row that meet a run of weights.
template <class F>
inline void load_run(Input row, uint unit, uint run, uint k, thread float4 (&x)[4]) {
  if (F::is_whole(unit, run, k)) {
#pragma unroll
    for (uint piece = 0; piece < 4; ++piece)
      x[piece] = *reinterpret_cast<device const float4*>(row + F::position(unit, run, piece));
  } else {
#pragma unroll
    for (uint piece = 0; piece < 4; ++piece)
      x[piece] = load_four(row, F::position(unit, run, piece), k, k % 4 == 0);
  }
}

// What a SIMD-group works on: `rows` rows from `row` on, and a block of outputs.
struct Share {
  uint row, n_rows, block;
};
