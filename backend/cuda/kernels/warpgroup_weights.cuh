// How weights of each format become A fragments of wgmma (warpgroup.cuh).
//
// A format has
//   kNumbers     weights of a row that are copied at once
//   kBytes       their bytes
//   kCopied      bytes that are copied: more than kBytes where a row may begin between two multiples of 16
//   kRowBytes    from one row to the next in shared memory: an odd number of 16-byte pieces, so that the 8 rows which a warp
//                reads at once lie in different banks
//   kParts       of an input: 1 F16 number, or 2 bfloat16 numbers
//   weights(row, unit, t, numbers)   of unit `unit` of 32 weights, those of lane t of four: numbers[2 i + j] has numbers 4 t + j
//                                    and 4 t + 2 + j of its i-th 16
// `row`: those bytes in shared memory.
#pragma once

#include "cuda/kernels/streamed_weights.cuh"

namespace gpu {

// Quantised weights are dequantised to F16.
template <class F>
struct QuantisedWeights : F {
  static constexpr uint kNumbers = 256, kParts = 1, kBytes = F::kWindowBytes;
  static constexpr uint kPieces = (kBytes + (kBytes % 16 == 0 ? 0 : 14) + 15) / 16;
  static constexpr uint kCopied = 16 * kPieces, kRowBytes = 16 * (kPieces | 1u);
};
using Q4_0Weights = QuantisedWeights<Q4_0Streamed>;
using Q4_1Weights = QuantisedWeights<Q4_1Streamed>;
using Q5_0Weights = QuantisedWeights<Q5_0Streamed>;
using Q5_1Weights = QuantisedWeights<Q5_1Streamed>;
using Q8_0Weights = QuantisedWeights<Q8_0Streamed>;
using Q3_KWeights = QuantisedWeights<Q3_KStreamed>;
using Q4_KWeights = QuantisedWeights<Q4_KStreamed>;
using Q5_KWeights = QuantisedWeights<Q5_KStreamed>;
using Q6_KWeights = QuantisedWeights<Q6_KStreamed>;

// Unquantised: F16 or bfloat16.
template <uint kOwnParts>
struct NumberWeights {
  static constexpr uint kNumbers = 64, kBytes = 128, kCopied = 128, kRowBytes = 160;
  static constexpr uint kParts = kOwnParts;
  AKUNU_DEVICE static void weights(const uchar* row, uint unit, uint t, uint (&numbers)[4]) {
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      const uchar* const at = row + unit * 64 + 32 * i + 8 * t;
      const uint first = word_at(at), second = word_at(at + 4);
      numbers[2 * i] = choose_bytes(first, second, 0x5410);
      numbers[2 * i + 1] = choose_bytes(first, second, 0x7632);
    }
  }
};
using F16Weights = NumberWeights<1>;
using BF16Weights = NumberWeights<2>;

}  // namespace gpu
