// The input of a prompt's matmul in parts: float32 numbers as sums of three bfloat16 numbers, which
// lose nothing. split_input.cu makes them, once for all tiles; multiply_tile.cuh reads them.
//
// Rows of a step of 32 numbers follow one another, so that a tile's are one piece of memory:
//   [step][row][part][32] numbers of two bytes, zeros past the end of a row
//   [step][run][row]      float32: the sum of 16 inputs, for formats with a minimum
#pragma once

#include "cuda/kernels/language.cuh"

namespace gpu {

constexpr uint kInputParts = 3;
constexpr uint kSplitRowBytes = kInputParts * 64;
constexpr uint kSplitStepBytes = kSplitRowBytes + 2 * 4;  // a row's sums among them

struct SplitInput {
  const unsigned char* parts;
  uint n_rows, k;
  AKUNU_DEVICE const unsigned char* row(uint step, uint r) const {
    return parts + (ulong(step) * n_rows + r) * kSplitRowBytes;
  }
  AKUNU_DEVICE const float* sums(uint step, uint run) const {
    const uint n_steps = (k + 31) / 32;
    return reinterpret_cast<const float*>(row(n_steps, 0)) + ulong(2 * step + run) * n_rows;
  }
};

// The next part of eight numbers; what is left stays in them.
AKUNU_DEVICE uint4 take_part(float4& first, float4& second) {
  uint words[4];
#pragma unroll
  for (uint i = 0; i < 2; ++i) {
    float4& four = i == 0 ? first : second;
    const uint low = pack_bfloat16(four.x, four.y), high = pack_bfloat16(four.z, four.w);
    four.x = four.x - as_type<float>(low << 16);
    four.y = four.y - as_type<float>(low & 0xffff0000u);
    four.z = four.z - as_type<float>(high << 16);
    four.w = four.w - as_type<float>(high & 0xffff0000u);
    words[2 * i] = low;
    words[2 * i + 1] = high;
  }
  return uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace gpu
