// How streamed_rows.cuh and streamed_tile.cuh dequantise weights: from their bytes in shared memory to F16 numbers.
//
// A weight is rounded once, to F16: d * code, or d * code + m where a format has minima. K formats round d and m to F16 first, since
// they are products themselves. So what a tensor core adds are weights, and no scale has to be applied to its sums.
//
// A window is 256 weights of a row: eight units of 32. A format has
//   kWindowBytes                          the bytes of a window
//   weights(window, unit, part, numbers)  eight weights of a unit. `window` points to the bytes of the window. numbers[0] are weights
//                                         4 part and 4 part + 2 of the unit, numbers[1] 4 part + 1 and 4 part + 3; numbers[2] and
//                                         numbers[3] are the same of its second 16 weights.
// Layouts: metal/kernels/formats_32.h and formats_k.h.
#pragma once

#include "cuda/kernels/warpgroup.cuh"

namespace gpu {

// Two F16 numbers: 1024. With a code in its lower bits such a number is 1024 + code.
constexpr uint kHalf1024 = 0x64006400u;
// Two F16 numbers each, for subtracting what codes are too large by.
constexpr uint kLess1024 = 0xe400e400u, kLess1028 = 0xe404e404u, kLess1032 = 0xe408e408u,
               kLess1040 = 0xe410e410u, kLess1056 = 0xe420e420u, kLess1152 = 0xe480e480u;
constexpr uint kSixteenth = 0x2c002c00u, kLess64 = 0xd400d400u, kLess72 = 0xd480d480u;

AKUNU_DEVICE uint word_at(const uchar* p) { return *reinterpret_cast<const uint*>(p); }
// Reads four bytes from an address that is a multiple of two.
AKUNU_DEVICE uint halves_at(const uchar* p) {
  const ushort* const halves = reinterpret_cast<const ushort*>(p);
  return halves[0] | uint(halves[1]) << 16;
}
AKUNU_DEVICE uint half_bits_at(const uchar* p) { return *reinterpret_cast<const ushort*>(p); }
AKUNU_DEVICE uint both_halves(uint bits) { return bits * 0x00010001u; }
AKUNU_DEVICE uint both_low_halves(uint word) { return choose_bytes(word, word, 0x1010); }
AKUNU_DEVICE uint both_high_halves(uint word) { return choose_bytes(word, word, 0x3232); }
AKUNU_DEVICE uint low_nibbles(uint word) { return word & 0x0f0f0f0fu; }
AKUNU_DEVICE uint high_nibbles(uint word) { return word >> 4 & 0x0f0f0f0fu; }
// Bits first to first + 3 as bit 4 of four bytes.
AKUNU_DEVICE uint fifth_bits_at(uint bits, uint first) {
  return ((bits >> first & 15u) * 0x00204081u & 0x01010101u) << 4;
}
// Codes of bytes 0 and 2 (j = 0) or 1 and 3 (j = 1) of a word, plus 1024.
AKUNU_DEVICE uint codes_of_bytes(uint word, uint j) {
  return choose_bytes(word, kHalf1024, j == 0 ? 0x5250 : 0x5351);
}

// --- Blocks of 32, eight of a window ---------------------------------------------------------------------

// A word of block `unit`. If the length of a block is not a multiple of four bytes, the words of every second block begin two
// bytes after a multiple of four.
template <uint kBlockBytes>
AKUNU_DEVICE uint block_word_at(const uchar* p, uint unit) {
  if (kBlockBytes % 4 == 0 || unit % 2 == 1) return word_at(p);
  return choose_bytes(word_at(p - 2), word_at(p + 2), 0x5432);
}

// The scale of a block, with which it begins, and its minimum, where the format has minima.
template <bool kHasMinimum>
struct BlockScale {
  uint scale, minimum;
  AKUNU_DEVICE static BlockScale of(const uchar* block) {
    return {both_halves(half_bits_at(block)),
            kHasMinimum ? both_halves(half_bits_at(block + 2)) : 0};
  }
  AKUNU_DEVICE uint weights(uint codes) const {
    return kHasMinimum ? fma_halves(codes, scale, minimum) : multiply_halves(codes, scale);
  }
};

// Codes of four bits, less 8 or with a minimum.
template <uint kBlockBytes, uint kCodesAt, bool kHasMinimum>
struct FourBitBlocks {
  static constexpr uint kWindowBytes = 8 * kBlockBytes;
  AKUNU_DEVICE static void weights(const uchar* window, uint unit, uint part, uint (&numbers)[4]) {
    const uchar* const block = window + kBlockBytes * unit;
    const uint word = block_word_at<kBlockBytes>(block + kCodesAt + 4 * part, unit);
    const auto by = BlockScale<kHasMinimum>::of(block);
#pragma unroll
    for (uint j = 0; j < 2; ++j) {
      // 1024 + code, and 1024 + 16 times the code
      const uint low = put_bits(word >> 8 * j, 0x000f000fu, kHalf1024);
      const uint high = put_bits(word >> 8 * j, 0x00f000f0u, kHalf1024);
      const uint first = add_halves(low, kHasMinimum ? kLess1024 : kLess1032);
      const uint second = fma_halves(high, kSixteenth, kHasMinimum ? kLess64 : kLess72);
      numbers[j] = by.weights(first);
      numbers[2 + j] = by.weights(second);
    }
  }
};
using Q4_0Streamed = FourBitBlocks<18, 2, false>;
using Q4_1Streamed = FourBitBlocks<20, 4, true>;

// Codes of five bits, less 16 or with a minimum: the 32 upper bits lie in front of the codes.
template <uint kBlockBytes, uint kCodesAt, bool kHasMinimum>
struct FiveBitBlocks {
  static constexpr uint kWindowBytes = 8 * kBlockBytes;
  AKUNU_DEVICE static void weights(const uchar* window, uint unit, uint part, uint (&numbers)[4]) {
    const uchar* const block = window + kBlockBytes * unit;
    const uint word = block_word_at<kBlockBytes>(block + kCodesAt + 4 * part, unit);
    const uint upper = block_word_at<kBlockBytes>(block + kCodesAt - 4, unit);
    const auto by = BlockScale<kHasMinimum>::of(block);
    const uint codes[2] = {low_nibbles(word) | fifth_bits_at(upper, 4 * part),
                           high_nibbles(word) | fifth_bits_at(upper, 16 + 4 * part)};
#pragma unroll
    for (uint i = 0; i < 4; ++i) {
      const uint code =
          add_halves(codes_of_bytes(codes[i / 2], i % 2), kHasMinimum ? kLess1024 : kLess1040);
      numbers[i] = by.weights(code);
    }
  }
};
using Q5_0Streamed = FiveBitBlocks<22, 6, false>;
using Q5_1Streamed = FiveBitBlocks<24, 8, true>;

struct Q8_0Streamed {
  static constexpr uint kWindowBytes = 272;
  AKUNU_DEVICE static void weights(const uchar* window, uint unit, uint part, uint (&numbers)[4]) {
    const uchar* const block = window + 34 * unit;
    const uint scale = both_halves(half_bits_at(block));
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint codes =
          block_word_at<34>(block + 2 + 16 * half + 4 * part, unit) ^ 0x80808080u;  // 128 larger
#pragma unroll
      for (uint j = 0; j < 2; ++j)
        numbers[2 * half + j] =
            multiply_halves(add_halves(codes_of_bytes(codes, j), kLess1152), scale);
    }
  }
};

// --- Blocks of 256 -----------------------------------------------------------------------------------------

// Q4_K and Q5_K: scale and minimum of a unit, which 12 bytes have as codes of six bits; the minimum is negative.
struct ScaleAndMinimum {
  uint scale, minimum;
  AKUNU_DEVICE static ScaleAndMinimum of(const uchar* block, uint unit) {
    const uchar* const packed = block + 4 + unit % 4;
    const uint first = packed[0], second = packed[4], third = packed[8];
    const uint scale = unit < 4 ? first & 63u : (third & 15u) | first >> 6 << 4;
    const uint minimum = unit < 4 ? second & 63u : third >> 4 | second >> 6 << 4;
    const uint codes = add_halves((scale | minimum << 16) | kHalf1024, kLess1024);
    const uint both = multiply_halves(codes, word_at(block) ^ 0x80000000u);
    return {both_low_halves(both), both_high_halves(both)};
  }
};

template <bool kHasFifthBits>
struct KBlocksWithMinimum {
  static constexpr uint kWindowBytes = kHasFifthBits ? 176 : 144, kCodesAt = kWindowBytes - 128;
  AKUNU_DEVICE static void weights(const uchar* window, uint unit, uint part, uint (&numbers)[4]) {
    const auto by = ScaleAndMinimum::of(window, unit);
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint word = word_at(window + kCodesAt + unit / 2 * 32 + 16 * half + 4 * part);
      uint codes = unit % 2 == 0 ? low_nibbles(word) : high_nibbles(word);
      if (kHasFifthBits)
        codes |= (word_at(window + 16 + 16 * half + 4 * part) >> unit & 0x01010101u) << 4;
#pragma unroll
      for (uint j = 0; j < 2; ++j)
        numbers[2 * half + j] =
            fma_halves(add_halves(codes_of_bytes(codes, j), kLess1024), by.scale, by.minimum);
    }
  }
};
using Q4_KStreamed = KBlocksWithMinimum<false>;
using Q5_KStreamed = KBlocksWithMinimum<true>;

// Rows begin at multiples of two. A scale for each 16 weights.
struct Q6_KStreamed {
  static constexpr uint kWindowBytes = 210;
  AKUNU_DEVICE static void weights(const uchar* window, uint unit, uint part, uint (&numbers)[4]) {
    const uchar* const lows = window + unit / 4 * 64 + unit % 2 * 32 + 4 * part;
    const uchar* const highs = window + 128 + unit / 4 * 32 + 4 * part;
    const uint two = half_bits_at(window + 192 + 2 * unit) ^ 0x8080u;  // int8, 128 larger
    const uint scales = multiply_halves(add_halves(choose_bytes(two, kHalf1024, 0x5150), kLess1152),
                                        both_halves(half_bits_at(window + 208)));
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint word = halves_at(lows + 16 * half);
      const uint upper = halves_at(highs + 16 * half) >> unit % 4 * 2 & 0x03030303u;
      const uint codes = (unit % 4 < 2 ? low_nibbles(word) : high_nibbles(word)) | upper << 4;
      const uint scale = half == 0 ? both_low_halves(scales) : both_high_halves(scales);
#pragma unroll
      for (uint j = 0; j < 2; ++j)
        numbers[2 * half + j] =
            multiply_halves(add_halves(codes_of_bytes(codes, j), kLess1056), scale);
    }
  }
};

// Likewise, with 12 bytes for 16 scales of six bits.
struct Q3_KStreamed {
  static constexpr uint kWindowBytes = 110;
  AKUNU_DEVICE static void weights(const uchar* window, uint unit, uint part, uint (&numbers)[4]) {
    const uint two = scale_code(window, 2 * unit) | scale_code(window, 2 * unit + 1) << 16;
    const uint scales = multiply_halves(add_halves(two | kHalf1024, kLess1056),
                                        both_halves(half_bits_at(window + 108)));
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint low =
          halves_at(window + 32 + unit / 4 * 32 + 16 * half + 4 * part) >> unit % 4 * 2;
      const uint high = halves_at(window + 16 * half + 4 * part) >> unit;
      const uint codes = (low & 0x03030303u) | (high & 0x01010101u) << 2;
      const uint scale = half == 0 ? both_low_halves(scales) : both_high_halves(scales);
#pragma unroll
      for (uint j = 0; j < 2; ++j)
        numbers[2 * half + j] =
            multiply_halves(add_halves(codes_of_bytes(codes, j), kLess1028), scale);
    }
  }
  // The code of scale `index` of 16.
  AKUNU_DEVICE static uint scale_code(const uchar* window, uint index) {
    const uint low = window[96 + index % 8] >> index / 8 * 4 & 15u;
    const uint high = window[104 + index % 4] >> index / 4 * 2 & 3u;
    return low | high << 4;
  }
};

}  // namespace gpu
