// How streamed_rows.cuh reads quantised weights from shared memory: codes and scales of each format.
//
// k goes in units of 32 weights, and in steps of four units. Of a unit, lane t of four takes the codes 4 t to 4 t + 3 and 16 +
// 4 t to 16 + 4 t + 3: a byte each, in two words, not negative.
//
// A format says: kWindowBytes, bytes of 256 weights; kScales of a unit, one for 32 codes or two for 16. codes(row, step, t) and
// scales(row, step, unit of the step) are of a weight row whose bytes begin at `row`. What the sums of 16 inputs are multiplied by, for
// offsets and minima: terms(row, step, unit of the step), a half for each 16 weights, times term_scale(row, step). A code counts
// as 2^-24, a sum of inputs as a 64th (kOfCodes, kOfSums). Layouts: metal/kernels/formats_32.h and formats_k.h.
#pragma once

#include "cuda/kernels/warpgroup.cuh"

namespace gpu {

// The inputs of the second 16 codes of a unit are divided by 16. So their codes must be multiplied by 16: by a shift, or by their
// scale, or they are upper halves of bytes. Then the first word of `codes` has both, and the second is not used.
enum class Second { is_16_fold, shift, has_own_scale };

struct StepCodes {
  uint of[4][2];
};
template <class F>
struct UnitScales {
  float scales[F::kScales];
};
constexpr float kOfCodes = 16777216.0f;  // 2^24
// The scale of terms that are to be multiplied by `factor`.
AKUNU_DEVICE float of_terms(float factor) { return factor * 64.0f / kOfCodes; }
constexpr uint kHalf1024 = 0x64006400u;

AKUNU_DEVICE uint word_at(const uchar* p) { return *reinterpret_cast<const uint*>(p); }
// Of an address that is a multiple of two.
AKUNU_DEVICE uint halves_at(const uchar* p) {
  const ushort* const halves = reinterpret_cast<const ushort*>(p);
  return halves[0] | uint(halves[1]) << 16;
}
AKUNU_DEVICE uint both_halves(uint bits) { return bits * 0x00010001u; }
AKUNU_DEVICE uint half_bits_at(const uchar* p) { return *reinterpret_cast<const ushort*>(p); }
AKUNU_DEVICE float half_at(const uchar* p) { return low_half(*reinterpret_cast<const ushort*>(p)); }
AKUNU_DEVICE uint low_nibbles(uint word) { return word & 0x0f0f0f0fu; }
AKUNU_DEVICE uint high_nibbles(uint word) { return word >> 4 & 0x0f0f0f0fu; }
// Bits first to first + 3 as bit 4 of four bytes.
AKUNU_DEVICE uint fifth_bits_at(uint bits, uint first) {
  return ((bits >> first & 15u) * 0x00204081u & 0x01010101u) << 4;
}

// --- Blocks of 32, four of a step ------------------------------------------------------------------------

// A word of block `unit` of a step. Where blocks are no multiple of four bytes long, those of every second one lie two
// bytes behind a multiple of four.
template <uint kBlockBytes>
AKUNU_DEVICE uint block_word_at(const uchar* p, uint unit) {
  if (kBlockBytes % 4 == 0 || unit % 2 == 1) return word_at(p);
  return choose_bytes(word_at(p - 2), word_at(p + 2), 0x5432);
}

// Codes of four bits, or of five where kFifthBitsAt is not 0: where the 32 upper bits begin in a block. A block begins with
// its scale and, where there is one, its minimum.
template <uint kBlockBytes, uint kCodesAt, uint kFifthBitsAt, uint kCodeOffset, bool kHasMinimum>
struct NibbleBlocks {
  static constexpr uint kWindowBytes = 8 * kBlockBytes, kScales = 1;
  static constexpr Second kSecond = kFifthBitsAt == 0 ? Second::is_16_fold : Second::shift;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    StepCodes own;
#pragma unroll
    for (uint unit = 0; unit < 4; ++unit) {
      const uchar* const block = row + kBlockBytes * (4 * step + unit);
      const uint word = block_word_at<kBlockBytes>(block + kCodesAt + 4 * t, unit);
      own.of[unit][0] = word;
      own.of[unit][1] = 0;
      if (kSecond == Second::is_16_fold) continue;
      own.of[unit][0] = low_nibbles(word);
      own.of[unit][1] = high_nibbles(word);
      const uint high = block_word_at<kBlockBytes>(block + kFifthBitsAt, unit);
      own.of[unit][0] |= fifth_bits_at(high, 4 * t);
      own.of[unit][1] |= fifth_bits_at(high, 16 + 4 * t);
    }
    return own;
  }
  AKUNU_DEVICE static UnitScales<NibbleBlocks> scales(const uchar* row, uint step, uint unit) {
    return {{half_at(row + kBlockBytes * (4 * step + unit))}};
  }
  AKUNU_DEVICE static uint terms(const uchar* row, uint step, uint unit) {
    return both_halves(half_bits_at(row + kBlockBytes * (4 * step + unit) + (kHasMinimum ? 2 : 0)));
  }
  AKUNU_DEVICE static float term_scale(const uchar*, uint) {
    return of_terms(kHasMinimum ? 1.0f : -float(kCodeOffset));
  }
};
using Q4_0Streamed = NibbleBlocks<18, 2, 0, 8, false>;
using Q4_1Streamed = NibbleBlocks<20, 4, 0, 0, true>;
using Q5_0Streamed = NibbleBlocks<22, 6, 2, 16, false>;
using Q5_1Streamed = NibbleBlocks<24, 8, 4, 0, true>;

struct Q8_0Streamed {
  static constexpr uint kWindowBytes = 272, kScales = 2;
  static constexpr Second kSecond = Second::has_own_scale;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    StepCodes own;
#pragma unroll
    for (uint unit = 0; unit < 4; ++unit)
#pragma unroll
      for (uint half = 0; half < 2; ++half)
        own.of[unit][half] =
            block_word_at<34>(row + 34 * (4 * step + unit) + 2 + 16 * half + 4 * t, unit) ^
            0x80808080u;
    return own;
  }
  AKUNU_DEVICE static UnitScales<Q8_0Streamed> scales(const uchar* row, uint step, uint unit) {
    const float scale = half_at(row + 34 * (4 * step + unit));
    return {{scale, 16.0f * scale}};
  }
  AKUNU_DEVICE static uint terms(const uchar* row, uint step, uint unit) {
    return both_halves(half_bits_at(row + 34 * (4 * step + unit)));
  }
  AKUNU_DEVICE static float term_scale(const uchar*, uint) { return of_terms(-128.0f); }
};

// --- Blocks of 256: two steps ------------------------------------------------------------------------------

// Q4_K and Q5_K: 12 bytes with scales and minima, of six bits, of eight units.
struct SixBitScales {
  static constexpr uint kScales = 1;
  static constexpr Second kSecond = Second::shift;
  AKUNU_DEVICE static float scale(const uchar* block, uint unit) {
    const uchar* const packed = block + 4;
    const uint first = packed[unit % 4];
    const uint code = unit < 4 ? first & 63u : (packed[unit % 4 + 8] & 15u) | first >> 6 << 4;
    return half_at(block) * float(code);
  }
  AKUNU_DEVICE static uint minimum(const uchar* block, uint unit) {
    const uchar* const packed = block + 4;
    const uint second = packed[unit % 4 + 4];
    return unit < 4 ? second & 63u : uint(packed[unit % 4 + 8]) >> 4 | second >> 6 << 4;
  }
  // As the bits of a half a minimum's code counts as 2^-24.
  AKUNU_DEVICE static float term_scale(const uchar* block) { return -64.0f * half_at(block + 2); }
};

struct Q4_KStreamed : SixBitScales {
  static constexpr uint kWindowBytes = 144;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    const uchar* const at = row + step / 2 * kWindowBytes + 16 + step % 2 * 64 + 4 * t;
    StepCodes own;
#pragma unroll
    for (uint pair = 0; pair < 2; ++pair)
#pragma unroll
      for (uint half = 0; half < 2; ++half) {
        const uint word = word_at(at + 32 * pair + 16 * half);
        own.of[2 * pair][half] = low_nibbles(word);
        own.of[2 * pair + 1][half] = high_nibbles(word);
      }
    return own;
  }
  AKUNU_DEVICE static UnitScales<Q4_KStreamed> scales(const uchar* row, uint step, uint unit) {
    return {{scale(row + step / 2 * kWindowBytes, step % 2 * 4 + unit)}};
  }
  AKUNU_DEVICE static uint terms(const uchar* row, uint step, uint unit) {
    return both_halves(minimum(row + step / 2 * kWindowBytes, step % 2 * 4 + unit));
  }
  AKUNU_DEVICE static float term_scale(const uchar* row, uint step) {
    return SixBitScales::term_scale(row + step / 2 * kWindowBytes);
  }
};

struct Q5_KStreamed : SixBitScales {
  static constexpr uint kWindowBytes = 176;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    const uchar* const at = block + 48 + step % 2 * 64 + 4 * t;
    StepCodes own;
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint high = word_at(block + 16 + 16 * half + 4 * t) >> step % 2 * 4;
#pragma unroll
      for (uint pair = 0; pair < 2; ++pair) {
        const uint word = word_at(at + 32 * pair + 16 * half);
        const uint fifth = high >> 2 * pair & 0x03030303u;
        own.of[2 * pair][half] = low_nibbles(word) | (fifth & 0x01010101u) << 4;
        own.of[2 * pair + 1][half] = high_nibbles(word) | (fifth & 0x02020202u) << 3;
      }
    }
    return own;
  }
  AKUNU_DEVICE static UnitScales<Q5_KStreamed> scales(const uchar* row, uint step, uint unit) {
    return {{scale(row + step / 2 * kWindowBytes, step % 2 * 4 + unit)}};
  }
  AKUNU_DEVICE static uint terms(const uchar* row, uint step, uint unit) {
    return both_halves(minimum(row + step / 2 * kWindowBytes, step % 2 * 4 + unit));
  }
  AKUNU_DEVICE static float term_scale(const uchar* row, uint step) {
    return SixBitScales::term_scale(row + step / 2 * kWindowBytes);
  }
};

// Rows begin at multiples of two.
struct Q6_KStreamed {
  static constexpr uint kWindowBytes = 210, kScales = 2;
  static constexpr Second kSecond = Second::shift;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    const uchar *const low = block + step % 2 * 64 + 4 * t, *const high =
                                                                block + 128 + step % 2 * 32 + 4 * t;
    StepCodes own;
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint highs = halves_at(high + 16 * half);
#pragma unroll
      for (uint pair = 0; pair < 2; ++pair) {
        const uint word = halves_at(low + 32 * pair + 16 * half);
        own.of[pair][half] = low_nibbles(word) | (highs >> 2 * pair & 0x03030303u) << 4;
        own.of[pair + 2][half] = high_nibbles(word) | (highs >> (2 * pair + 4) & 0x03030303u) << 4;
      }
    }
    return own;
  }
  AKUNU_DEVICE static UnitScales<Q6_KStreamed> scales(const uchar* row, uint step, uint unit) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    const uint both = *reinterpret_cast<const ushort*>(block + 192 + step % 2 * 8 + 2 * unit);
    const float scale = half_at(block + 208);
    return {{scale * float(static_cast<signed char>(both & 255u)),
             scale * float(static_cast<signed char>(both >> 8))}};
  }
  AKUNU_DEVICE static uint terms(const uchar* row, uint step, uint unit) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    const uint both = *reinterpret_cast<const ushort*>(block + 192 + step % 2 * 8 + 2 * unit);
    return add_halves(choose_bytes(both ^ 0x8080u, kHalf1024, 0x5150), 0xe480e480u);  // less 1152
  }
  AKUNU_DEVICE static float term_scale(const uchar* row, uint step) {
    return of_terms(-32.0f) * half_at(row + step / 2 * kWindowBytes + 208);
  }
};

// Likewise, with 12 bytes for 16 scales of six bits.
struct Q3_KStreamed {
  static constexpr uint kWindowBytes = 110, kScales = 2;
  static constexpr Second kSecond = Second::shift;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    StepCodes own;
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint low = halves_at(block + 32 + step % 2 * 32 + 16 * half + 4 * t);
      const uint high = halves_at(block + 16 * half + 4 * t) >> step % 2 * 4;
#pragma unroll
      for (uint unit = 0; unit < 4; ++unit)
        own.of[unit][half] = (low >> 2 * unit & 0x03030303u) | (high >> unit & 0x01010101u) << 2;
    }
    return own;
  }
  AKUNU_DEVICE static UnitScales<Q3_KStreamed> scales(const uchar* row, uint step, uint unit) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    const float scale = half_at(block + 108);
    return {{scale * (float(code(block, step, 2 * unit)) - 32.0f),
             scale * (float(code(block, step, 2 * unit + 1)) - 32.0f)}};
  }
  AKUNU_DEVICE static uint terms(const uchar* row, uint step, uint unit) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    const uint both = code(block, step, 2 * unit) | code(block, step, 2 * unit + 1) << 16;
    return add_halves(both | kHalf1024, 0xe420e420u);  // less 1056
  }
  AKUNU_DEVICE static float term_scale(const uchar* row, uint step) {
    return of_terms(-4.0f) * half_at(row + step / 2 * kWindowBytes + 108);
  }
  // Of 16 weights, `index` of eight of a step: the other step's are in the other nibbles.
  AKUNU_DEVICE static uint code(const uchar* block, uint step, uint index) {
    const uint low = block[96 + index] >> 4 * (step % 2) & 15u;
    const uint high = block[104 + index % 4] >> (4 * (step % 2) + 2 * (index / 4)) & 3u;
    return low | high << 4;
  }
};

}  // namespace gpu
