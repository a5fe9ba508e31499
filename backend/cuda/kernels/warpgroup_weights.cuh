// How weights of each format become A fragments of wgmma (warpgroup.cuh).
//
// A format has
//   kNumbers                weights of a row that are copied at once
//   kBytes                  their bytes
//   kCopied                 bytes that are copied: more than kBytes where a row may begin between two
//                           multiples of 16
//   kRowBytes               from one row to the next in shared memory, chosen so that the 8 rows which
//                           a warp reads at once lie in different banks
//   kScaled, kMinimum       as in metal/kernels/formats.h
//   kParts                  of an input: 1 f16 number, or 2 bfloat16 numbers
//   kOneScale               all its blocks of 32 have the same scale
//   scale(row, block)       of block `block` of 32
//   unpack(row, block, t, pairs)   pairs[i][j]: a register for the i-th wgmma of the block, with numbers
//                           4 t + j and 4 t + 2 + j of its 16 of k
//   minima(row, t, pair, scale)           the minima of blocks 2 t and 2 t + 1 in a register, and their scale
// `row`: those bytes in shared memory.
#pragma once

#include "cuda/kernels/warpgroup.cuh"

namespace gpu {

constexpr uint kHalf1024 = 0x64006400u;

AKUNU_DEVICE uint word_at(const uchar* at) { return *reinterpret_cast<const uint*>(at); }

// The 4-bit codes of a word in f16 plus an offset, low and high ones: of bytes 0 and 2, then of 1 and 3.
AKUNU_DEVICE void unpack_nibbles(uint word, uint (&low)[2], uint (&high)[2]) {
#pragma unroll
  for (uint j = 0; j < 2; ++j) {
    low[j] = put_bits(word >> (8 * j), 0x000f000fu, kHalf1024);   // 1024 + code
    high[j] = put_bits(word >> (8 * j), 0x00f000f0u, kHalf1024);  // 1024 + 16 code
  }
}

// The scale d of a block of kBytes, whose first two bytes it is. Two blocks begin at a multiple of 4 bytes, so that d
// of the second one is the upper half of a word.
template <uint kBytes>
AKUNU_DEVICE float scale_of_block(const uchar* row, uint block) {
  const uchar* const two = row + block / 2 * (2 * kBytes);
  return block % 2 == 0 ? low_half(word_at(two)) : high_half(word_at(two + kBytes - 2));
}

// 18 bytes: d, 16 bytes of 4-bit codes. In the first of two blocks the codes begin in the middle of a 32-bit word.
struct Q4_0Weights {
  static constexpr uint kNumbers = 256, kBytes = 144, kCopied = 144, kRowBytes = 144;
  static constexpr uint kParts = 1;
  static constexpr bool kScaled = true, kOneScale = false, kMinimum = false;
  AKUNU_DEVICE static float scale(const uchar* row, uint block) {
    return scale_of_block<18>(row, block);
  }
  AKUNU_DEVICE static void unpack(const uchar* row, uint block, uint t, uint (&pairs)[2][2]) {
    const uchar* const at = row + block / 2 * 36 + 4 * t;
    const uint word =
        block % 2 == 0 ? choose_bytes(word_at(at), word_at(at + 4), 0x5432) : word_at(at + 20);
    uint low[2], high[2];
    unpack_nibbles(word, low, high);
#pragma unroll
    for (uint j = 0; j < 2; ++j) {
      pairs[0][j] = add_halves(low[j], 0xe408e408u);                // less 1032
      pairs[1][j] = fma_halves(high[j], 0x2c002c00u, 0xd480d480u);  // a 16th, less 72
    }
  }
};

// 34 bytes: d, 32 int8.
struct Q8_0Weights {
  static constexpr uint kNumbers = 256, kBytes = 272, kCopied = 272, kRowBytes = 272;
  static constexpr uint kParts = 1;
  static constexpr bool kScaled = true, kOneScale = false, kMinimum = false;
  AKUNU_DEVICE static float scale(const uchar* row, uint block) {
    return scale_of_block<34>(row, block);
  }
  AKUNU_DEVICE static void unpack(const uchar* row, uint block, uint t, uint (&pairs)[2][2]) {
    const uchar* const two = row + block / 2 * 68;
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      const uchar* const at = two + 16 * i + 4 * t;
      uint word =
          block % 2 == 0 ? choose_bytes(word_at(at), word_at(at + 4), 0x5432) : word_at(at + 36);
      word ^= 0x80808080u;                                                           // 128 larger
      pairs[i][0] = add_halves(choose_bytes(word, kHalf1024, 0x5250), 0xe480e480u);  // less 1152
      pairs[i][1] = add_halves(choose_bytes(word, kHalf1024, 0x5351), 0xe480e480u);
    }
  }
};

// 144 bytes: d, dmin, 12 bytes of scales and minima of six bits (formats_k.h), nibbles of which 32
// bytes have 64 weights. A code times its scale is at most 945: exact in a half.
struct Q4_KWeights {
  static constexpr uint kNumbers = 256, kBytes = 144, kCopied = 144, kRowBytes = 144;
  static constexpr uint kParts = 1;
  static constexpr bool kScaled = true, kOneScale = true, kMinimum = true;
  AKUNU_DEVICE static float scale(const uchar* row, uint) { return low_half(word_at(row)); }
  AKUNU_DEVICE static void unpack(const uchar* row, uint block, uint t, uint (&pairs)[2][2]) {
    const uint shift = block % 4 * 8;
    const uint own = word_at(row + (block < 4 ? 4 : 12)) >> shift;
    const uint code =
        block < 4 ? own & 63u : (own & 15u) | (word_at(row + 4) >> shift >> 2 & 0x30u);
    const uint scales = add_halves(code * 0x00010001u | kHalf1024, 0xe400e400u);
    const uint by = block % 2 == 0 ? scales : multiply_halves(scales, 0x2c002c00u);  // a 16th
    const uint less = multiply_halves(by, 0xe400e400u);                              // -1024 times
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      const uint word = word_at(row + 16 + block / 2 * 32 + 16 * i + 4 * t);
      uint low[2], high[2];
      unpack_nibbles(word, low, high);
#pragma unroll
      for (uint j = 0; j < 2; ++j)
        pairs[i][j] = fma_halves(block % 2 == 0 ? low[j] : high[j], by, less);
    }
  }
  AKUNU_DEVICE static void minima(const uchar* row, uint t, uint& pair, float& scale) {
    scale = -64.0f * high_half(word_at(row));  // sums are a 64th
    const uint middle = word_at(row + 8), last = word_at(row + 12);
    const uint codes =
        t < 2 ? middle & 0x3f3f3f3fu : (last >> 4 & 0x0f0f0f0fu) | (middle >> 2 & 0x30303030u);
    pair = add_halves(choose_bytes(codes, kHalf1024, t % 2 == 0 ? 0x5150 : 0x5352), 0xe400e400u);
  }
};

// 210 bytes: low nibbles, of which 64 bytes have 128 weights, two upper bits each in 64 bytes, int8
// scales of 16, d. A code times its scale is a whole number up to 4,096, rounded to a half: from
// 2,048 on by 2^-11 of it at most.
struct Q6_KWeights {
  static constexpr uint kNumbers = 256, kBytes = 210, kCopied = 224, kRowBytes = 240;
  static constexpr uint kParts = 1;
  static constexpr bool kScaled = true, kOneScale = true, kMinimum = false;
  AKUNU_DEVICE static float scale(const uchar* row, uint) {
    return low_half(*reinterpret_cast<const ushort*>(row + 208));
  }
  AKUNU_DEVICE static void unpack(const uchar* row, uint block, uint t, uint (&pairs)[2][2]) {
    const uint half_row = block / 4, quarter = block % 4;
    const uint scales = *reinterpret_cast<const ushort*>(row + 192 + 2 * block);
    // The row begins at a multiple of two.
    const uint odd = shared_address(row) & 2u, which = odd == 0 ? 0x3210 : 0x5432;
    const uchar* const words = row - odd + 4 * t;
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      const uchar* const lows = words + 64 * half_row + 32 * (quarter % 2) + 16 * i;
      const uchar* const highs = words + 128 + 32 * half_row + 16 * i;
      const uint low = choose_bytes(word_at(lows), word_at(lows + 4), which);
      const uint high = choose_bytes(word_at(highs), word_at(highs + 4), which);
      const uint codes =
          (low >> (quarter / 2 * 4) & 0x0f0f0f0fu) |
          ((quarter < 2 ? high << (4 - 2 * quarter) : high >> (2 * quarter - 4)) & 0x30303030u);
      const uint by = add_halves(
          choose_bytes(scales ^ 0x8080u, kHalf1024, i == 0 ? 0x5050 : 0x5151), 0xe480e480u);
#pragma unroll
      for (uint j = 0; j < 2; ++j)
        pairs[i][j] = multiply_halves(
            add_halves(put_bits(codes >> (8 * j), 0x00ff00ffu, kHalf1024), 0xe420e420u), by);
    }
  }
};

// Unquantised: f16 or bfloat16.
template <uint kOwnParts>
struct NumberWeights {
  static constexpr uint kNumbers = 64, kBytes = 128, kCopied = 128, kRowBytes = 160;
  static constexpr uint kParts = kOwnParts;
  static constexpr bool kScaled = false, kOneScale = true, kMinimum = false;
  AKUNU_DEVICE static float scale(const uchar*, uint) { return 1.0f; }
  AKUNU_DEVICE static void unpack(const uchar* row, uint block, uint t, uint (&pairs)[2][2]) {
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      const uchar* const at = row + block * 64 + 32 * i + 8 * t;
      const uint first = word_at(at), second = word_at(at + 4);
      pairs[i][0] = choose_bytes(first, second, 0x5410);
      pairs[i][1] = choose_bytes(first, second, 0x7632);
    }
  }
};
using F16Weights = NumberWeights<1>;
using BF16Weights = NumberWeights<2>;

}  // namespace gpu
