// How streamed_rows.h reads quantised weights from shared memory: codes and scales of each format.
//
// k goes in units of 32 weights, and in steps of four units. Of a unit, lane t of four takes the codes 4 t to 4 t + 3 and 16 +
// 4 t to 16 + 4 t + 3, as mma.m16n8k32 has them: a byte each, in two words.
//
// A format says: kWindowBytes, bytes of 256 weights; kScales of a unit, one for 32 codes or two for 16; kOffset, which is to
// be taken off each code; kMinimum, whether a unit has one. codes(row, step, t) and scales(row, step, unit of the step) are
// of a weight row whose bytes begin at `row`. Layouts: metal/kernels/formats_32.h and formats_k.h.

struct StepCodes {
  uint of[4][2];
};
template <class F>
struct UnitScales {
  float scales[F::kScales];
  float minimum;
};

AKUNU_DEVICE uint word_at(const uchar* p) { return *reinterpret_cast<const uint*>(p); }
// Of an address that is a multiple of two.
AKUNU_DEVICE uint halves_at(const uchar* p) {
  const ushort* const halves = reinterpret_cast<const ushort*>(p);
  return halves[0] | uint(halves[1]) << 16;
}
AKUNU_DEVICE float half_at(const uchar* p) { return low_half(*reinterpret_cast<const ushort*>(p)); }
AKUNU_DEVICE uint low_nibbles(uint word) { return word & 0x0f0f0f0fu; }
AKUNU_DEVICE uint high_nibbles(uint word) { return word >> 4 & 0x0f0f0f0fu; }
// Each of four bytes below 128, less `offset`.
AKUNU_DEVICE uint bytes_minus(uint word, uint offset) {
  return ((word | 0x80808080u) - offset * 0x01010101u) ^ 0x80808080u;
}
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
  static constexpr uint kWindowBytes = 8 * kBlockBytes, kScales = 1, kOffset = kCodeOffset;
  static constexpr bool kMinimum = kHasMinimum;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    StepCodes own;
#pragma unroll
    for (uint unit = 0; unit < 4; ++unit) {
      const uchar* const block = row + kBlockBytes * (4 * step + unit);
      const uint word = block_word_at<kBlockBytes>(block + kCodesAt + 4 * t, unit);
      own.of[unit][0] = low_nibbles(word);
      own.of[unit][1] = high_nibbles(word);
      if (kFifthBitsAt == 0) continue;
      const uint high = block_word_at<kBlockBytes>(block + kFifthBitsAt, unit);
      own.of[unit][0] |= fifth_bits_at(high, 4 * t);
      own.of[unit][1] |= fifth_bits_at(high, 16 + 4 * t);
    }
    return own;
  }
  AKUNU_DEVICE static UnitScales<NibbleBlocks> scales(const uchar* row, uint step, uint unit) {
    const uchar* const block = row + kBlockBytes * (4 * step + unit);
    if (!kHasMinimum) return {{half_at(block)}, 0.0f};
    const uint terms = word_at(block);
    return {{low_half(terms)}, high_half(terms)};
  }
};
using Q4_0Streamed = NibbleBlocks<18, 2, 0, 8, false>;
using Q4_1Streamed = NibbleBlocks<20, 4, 0, 0, true>;
using Q5_0Streamed = NibbleBlocks<22, 6, 2, 16, false>;
using Q5_1Streamed = NibbleBlocks<24, 8, 4, 0, true>;

struct Q8_0Streamed {
  static constexpr uint kWindowBytes = 272, kScales = 1, kOffset = 0;
  static constexpr bool kMinimum = false;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    StepCodes own;
#pragma unroll
    for (uint unit = 0; unit < 4; ++unit)
#pragma unroll
      for (uint half = 0; half < 2; ++half)
        own.of[unit][half] =
            block_word_at<34>(row + 34 * (4 * step + unit) + 2 + 16 * half + 4 * t, unit);
    return own;
  }
  AKUNU_DEVICE static UnitScales<Q8_0Streamed> scales(const uchar* row, uint step, uint unit) {
    return {{half_at(row + 34 * (4 * step + unit))}, 0.0f};
  }
};

// --- Blocks of 256: two steps ------------------------------------------------------------------------------

// Scale and minimum, of six bits, of unit `unit` of eight in the 12 bytes of Q4_K and Q5_K, times those of the block.
template <class F>
AKUNU_DEVICE UnitScales<F> six_bit_scales_at(const uchar* block, uint unit) {
  const uint terms = word_at(block);
  const uchar* const packed = block + 4;
  const uint first = packed[unit % 4], second = packed[unit % 4 + 4], third = packed[unit % 4 + 8];
  const uint scale = unit < 4 ? first & 63u : (third & 15u) | first >> 6 << 4;
  const uint minimum = unit < 4 ? second & 63u : third >> 4 | second >> 6 << 4;
  return {{low_half(terms) * float(scale)}, -(high_half(terms) * float(minimum))};
}

struct Q4_KStreamed {
  static constexpr uint kWindowBytes = 144, kScales = 1, kOffset = 0;
  static constexpr bool kMinimum = true;
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
    return six_bit_scales_at<Q4_KStreamed>(row + step / 2 * kWindowBytes, step % 2 * 4 + unit);
  }
};

struct Q5_KStreamed {
  static constexpr uint kWindowBytes = 176, kScales = 1, kOffset = 0;
  static constexpr bool kMinimum = true;
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
    return six_bit_scales_at<Q5_KStreamed>(row + step / 2 * kWindowBytes, step % 2 * 4 + unit);
  }
};

// Rows begin at multiples of two.
struct Q6_KStreamed {
  static constexpr uint kWindowBytes = 210, kScales = 2, kOffset = 0;
  static constexpr bool kMinimum = false;
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
        own.of[pair][half] =
            bytes_minus(low_nibbles(word) | (highs >> 2 * pair & 0x03030303u) << 4, 32);
        own.of[pair + 2][half] =
            bytes_minus(high_nibbles(word) | (highs >> (2 * pair + 4) & 0x03030303u) << 4, 32);
      }
    }
    return own;
  }
  AKUNU_DEVICE static UnitScales<Q6_KStreamed> scales(const uchar* row, uint step, uint unit) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    const uint both = *reinterpret_cast<const ushort*>(block + 192 + step % 2 * 8 + 2 * unit);
    const float scale = half_at(block + 208);
    return {{scale * float(static_cast<signed char>(both & 255u)),
             scale * float(static_cast<signed char>(both >> 8))},
            0.0f};
  }
};

// Likewise, with 12 bytes for 16 scales of six bits.
struct Q3_KStreamed {
  static constexpr uint kWindowBytes = 110, kScales = 2, kOffset = 0;
  static constexpr bool kMinimum = false;
  AKUNU_DEVICE static StepCodes codes(const uchar* row, uint step, uint t) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    StepCodes own;
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint low = halves_at(block + 32 + step % 2 * 32 + 16 * half + 4 * t);
      const uint high = halves_at(block + 16 * half + 4 * t) >> step % 2 * 4;
#pragma unroll
      for (uint unit = 0; unit < 4; ++unit)
        own.of[unit][half] =
            bytes_minus((low >> 2 * unit & 0x03030303u) | (high >> unit & 0x01010101u) << 2, 4);
    }
    return own;
  }
  AKUNU_DEVICE static UnitScales<Q3_KStreamed> scales(const uchar* row, uint step, uint unit) {
    const uchar* const block = row + step / 2 * kWindowBytes;
    const float scale = half_at(block + 108);
    UnitScales<Q3_KStreamed> own;
    own.minimum = 0.0f;
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint index = 2 * unit + half;  // of eight; the other step's are in the other nibbles
      const uint low = block[96 + index] >> 4 * (step % 2) & 15u;
      const uint high = block[104 + index % 4] >> (4 * (step % 2) + 2 * (index / 4)) & 3u;
      own.scales[half] = scale * (float(low | high << 4) - 32.0f);
    }
    return own;
  }
};
