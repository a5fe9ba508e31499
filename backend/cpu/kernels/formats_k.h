// The K formats: 256 weights in a super-block, with one or two halves for all of them and a small
// whole number as scale (and minimum) for every 16 or 32. Layouts are those of ggml's block_q2_K
// to block_q6_K.
//
//   j        the sub-block of weight i: i / 16 or i / 32
//   value    d * scale[j] * (code - offset), and where there are minima less dmin * min[j]
//
// Products of d, a scale and a code fit the 24 bits of a float32, and so do those of dmin and a
// minimum: `weight` rounds once where it subtracts, else never.
#pragma once

#include "cpu/kernels/formats_blocks.h"

namespace akunu::cpu {

struct BlockQ2_K {
  uint8_t scales[16];  // a scale in the low nibble, a minimum in the high one
  uint8_t low[64];
  uint16_t d, dmin;
};
struct BlockQ3_K {
  uint8_t high[32];  // bit j of byte i: bit 2 of weight 32 j + i
  uint8_t low[64];
  uint8_t scales[12];
  uint16_t d;
};
struct BlockQ4_K {
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t nibbles[128];
};
struct BlockQ5_K {
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t high[32];  // bit j of byte i: bit 4 of weight 32 j + i
  uint8_t nibbles[128];
};
struct BlockQ6_K {
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint16_t d;
};
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 &&
              sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

// Weight i of fields of two bits: 32 bytes hold 128 weights, each byte four that lie 32 apart.
static inline uint32_t two_bits(const uint8_t (&fields)[64], uint32_t i) {
  return fields[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3u;
}
// Weight i of nibbles: 32 bytes hold 64 weights, the first 32 in the low nibbles.
static inline uint32_t nibble(const uint8_t (&nibbles)[128], uint32_t i) {
  return nibbles[i / 64 * 32 + i % 32] >> i % 64 / 32 * 4 & 15u;
}
// Bit j of byte i, for weight 32 j + i.
static inline uint32_t one_bit(const uint8_t (&bits)[32], uint32_t i) {
  return bits[i % 32] >> i / 32 & 1u;
}

struct ScaleAndMinimum {
  uint32_t scale, minimum;
};
// Eight scales and eight minima of six bits (Q4_K, Q5_K). Those of the first four sub-blocks are the
// low bits of bytes 0-3 and 4-7; those of the last four have their low nibbles in bytes 8-11, scale
// below minimum, and their upper two bits above the first four's.
static inline ScaleAndMinimum scale_and_minimum(const uint8_t (&s)[12], uint32_t j) {
  if (j < 4) return {s[j] & 63u, s[4 + j] & 63u};
  return {(s[4 + j] & 15u) | static_cast<uint32_t>(s[j - 4] >> 6 << 4),
          static_cast<uint32_t>(s[4 + j] >> 4 | s[j] >> 6 << 4)};
}

// 16 scales of six bits, 32 too large (Q3_K). Low nibbles: bytes 0-7, the first eight scales below
// the last eight; upper two bits: bytes 8-11, four scales that lie 4 apart in each.
static inline int32_t scale_q3_k(const uint8_t (&s)[12], uint32_t j) {
  const int32_t low = s[j % 8] >> j / 8 * 4 & 15;
  const int32_t high = s[8 + j % 4] >> j / 4 * 2 & 3;
  return (low | high << 4) - 32;
}

// What the K formats share.
template <class Isa, class Trait, class Layout>
struct KBlocks : Blocks<Isa, Trait, Layout, 256> {
  using Base = Blocks<Isa, Trait, Layout, 256>;
  using Columns = typename Base::Columns;
  using Floats = typename Base::Floats;
  using Ints = typename Base::Ints;

 protected:
  // Four whole numbers, one in each byte of a lane, times `factor`.
  static void scale_bytes(Ints bytes, Floats factor, Floats (&out)[4]) {
    out[0] = scale_byte<0>(bytes, factor);
    out[1] = scale_byte<1>(bytes, factor);
    out[2] = scale_byte<2>(bytes, factor);
    out[3] = scale_byte<3>(bytes, factor);
  }
  // The same, each kOffset too large.
  template <uint32_t kOffset>
  static void scale_bytes_less(Ints bytes, Floats factor, Floats (&out)[4]) {
    const Ints offset = Columns::integers(kOffset);
    out[0] = scaled(Columns::subtract(Base::template byte_of<0>(bytes), offset), factor);
    out[1] = scaled(Columns::subtract(Base::template byte_of<1>(bytes), offset), factor);
    out[2] = scaled(Columns::subtract(Base::template byte_of<2>(bytes), offset), factor);
    out[3] = scaled(Columns::subtract(Base::template byte_of<3>(bytes), offset), factor);
  }
  // Scales of 16 sub-blocks, four in an Ints: two for each group.
  static void store_scales(const Floats (&four)[4], uint32_t quarter, typename Base::Scales& out) {
    for (uint32_t i = 0; i < 4; ++i) out.scale[2 * quarter + i / 2][i % 2] = four[i];
  }

 private:
  static Floats scaled(Ints numbers, Floats factor) {
    return Columns::multiply(Columns::to_float(numbers), factor);
  }
  template <int kByte>
  static Floats scale_byte(Ints bytes, Floats factor) {
    return scaled(Base::template byte_of<kByte>(bytes), factor);
  }
};

template <class Isa>
struct Q2_K : KBlocks<Isa, Q2_K<Isa>, BlockQ2_K> {
  using Base = KBlocks<Isa, Q2_K<Isa>, BlockQ2_K>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = 10;
  static constexpr uint32_t kDots = 2, kLargestCode = 3, kSpan = 4;
  static constexpr bool kHasMinimum = true;

  static float weight(const BlockQ2_K& block, uint32_t i) {
    const uint8_t s = block.scales[i / 16];
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s & 15);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s >> 4);
    return scale * static_cast<float>(two_bits(block.low, i)) - minimum;
  }

  static void scales(const Panel& panel, uint32_t group, typename Base::Scales& out) {
    Ints end[4], bytes[4];
    Base::template load_bytes<4>(panel, group, sizeof(BlockQ2_K) - 16, end);
    const auto d = Columns::low_halves(end[3]);
    const auto dmin =
        Columns::negate(Columns::low_halves(Columns::template shift_right<16>(end[3])));
    Base::template load_bytes<4>(panel, group, 0, bytes);
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      typename Base::Floats four[4];
      Base::scale_bytes(Base::template fields<0, 4>(bytes[quarter]), d, four);
      Base::store_scales(four, quarter, out);
      // Bytes 0 and 1 are the minima of a group's halves, 2 and 3 those of the next one.
      const Ints minima = Base::template fields<4, 4>(bytes[quarter]);
      out.minimum[2 * quarter] = pair(minima);
      out.minimum[2 * quarter + 1] = pair(Columns::template shift_right<16>(minima));
      out.minimum_scale[2 * quarter] = out.minimum_scale[2 * quarter + 1] = dmin;
    }
  }

  struct Raw {
    Ints low[8];
  };
  static Raw load(const Panel& panel, uint32_t group) {
    Raw raw;
    const uint32_t half = group % 8 / 4;
    Base::template load_bytes<8>(panel, group, offsetof(BlockQ2_K, low) + 32 * half, raw.low);
    return raw;
  }
  template <uint32_t kIndex>
  static void codes(const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) out[j] = Base::template fields<2 * kIndex, 2>(raw.low[j]);
  }

 private:
  // Bytes 0 and 1 of each lane as two int16.
  static Ints pair(Ints bytes) {
    return Columns::bit_or(
        Columns::bit_and(bytes, Columns::integers(0xff)),
        Columns::bit_and(Columns::template shift_left<8>(bytes), Columns::integers(0x00ff0000u)));
  }
};

template <class Isa>
struct Q3_K : KBlocks<Isa, Q3_K<Isa>, BlockQ3_K> {
  using Base = KBlocks<Isa, Q3_K<Isa>, BlockQ3_K>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = 11;
  static constexpr uint32_t kDots = 2, kLargestCode = 7, kOffset = 4, kSpan = 8;

  static float weight(const BlockQ3_K& block, uint32_t i) {
    const uint32_t code = two_bits(block.low, i) | one_bit(block.high, i) << 2;
    const float scale =
        Isa::half_to_float(block.d) * static_cast<float>(scale_q3_k(block.scales, i / 16));
    return scale * static_cast<float>(static_cast<int32_t>(code) - 4);
  }

  static void scales(const Panel& panel, uint32_t group, typename Base::Scales& out) {
    // The last 16 bytes: two that belong to `low`, the twelve of `scales`, d.
    Ints end[4], s[3];
    Base::template load_bytes<4>(panel, group, sizeof(BlockQ3_K) - 16, end);
    for (uint32_t j = 0; j < 3; ++j)
      s[j] = Columns::bit_or(Columns::template shift_right<16>(end[j]),
                             Columns::template shift_left<16>(end[j + 1]));
    const auto d = Columns::low_halves(Columns::template shift_right<16>(end[3]));
    const auto store = [&](uint32_t quarter, Ints low, Ints high) {
      typename Base::Floats four[4];
      Base::template scale_bytes_less<32>(
          Columns::bit_or(low, Columns::template shift_left<4>(high)), d, four);
      Base::store_scales(four, quarter, out);
    };
    store(0, Base::template fields<0, 4>(s[0]), Base::template fields<0, 2>(s[2]));
    store(1, Base::template fields<0, 4>(s[1]), Base::template fields<2, 2>(s[2]));
    store(2, Base::template fields<4, 4>(s[0]), Base::template fields<4, 2>(s[2]));
    store(3, Base::template fields<4, 4>(s[1]), Base::template fields<6, 2>(s[2]));
  }

  struct Raw {
    Ints low[16], high[8];
  };
  static Raw load(const Panel& panel, uint32_t group) {
    Raw raw;
    Base::template load_bytes<16>(panel, group, offsetof(BlockQ3_K, low), raw.low);
    Base::template load_bytes<8>(panel, group, offsetof(BlockQ3_K, high), raw.high);
    return raw;
  }
  template <uint32_t kIndex>
  static void codes(const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) {
      const Ints low = Base::template fields<kIndex % 4 * 2, 2>(raw.low[kIndex / 4 * 8 + j]);
      const Ints high = Base::template fields<kIndex, 1>(raw.high[j]);
      out[j] = Columns::bit_or(low, Columns::template shift_left<2>(high));
    }
  }
};

// Scales and minima of Q4_K and Q5_K: their first 16 bytes are d, dmin and the twelve of `scales`.
template <class Isa, class Trait, class Layout>
struct SixBitScales : KBlocks<Isa, Trait, Layout> {
  using Base = KBlocks<Isa, Trait, Layout>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr bool kHasMinimum = true;

  static void scales(const Panel& panel, uint32_t group, typename Base::Scales& out) {
    static_assert(offsetof(Layout, d) == 0 && offsetof(Layout, scales) == 4);
    Ints begin[4];
    Base::template load_bytes<4>(panel, group, 0, begin);
    const auto d = Columns::low_halves(begin[0]);
    const auto dmin =
        Columns::negate(Columns::low_halves(Columns::template shift_right<16>(begin[0])));
    const Ints first = begin[1], second = begin[2], third = begin[3];
    typename Base::Floats scale[2][4], minimum[2][4];
    Base::scale_bytes(Base::template fields<0, 6>(first), d, scale[0]);
    Base::scale_bytes(joined(Base::template fields<0, 4>(third), first), d, scale[1]);
    Base::scale_bytes(Base::template fields<0, 6>(second), dmin, minimum[0]);
    Base::scale_bytes(joined(Base::template fields<4, 4>(third), second), dmin, minimum[1]);
    for (uint32_t g = 0; g < 8; ++g) {
      out.scale[g][0] = scale[g / 4][g % 4];
      out.minimum_scale[g] = minimum[g / 4][g % 4];
      out.minimum[g] = Columns::integers(0x00010001u);
    }
  }

 private:
  // Four low bits, and two more from the top of the first four sub-blocks' bytes.
  static Ints joined(Ints low, Ints upper) {
    return Columns::bit_or(low,
                           Columns::template shift_left<4>(Base::template fields<6, 2>(upper)));
  }
};

template <class Isa>
struct Q4_K : SixBitScales<Isa, Q4_K<Isa>, BlockQ4_K> {
  using Base = SixBitScales<Isa, Q4_K<Isa>, BlockQ4_K>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = 12;
  static constexpr uint32_t kLargestCode = 15, kSpan = 2;

  static float weight(const BlockQ4_K& block, uint32_t i) {
    const ScaleAndMinimum s = scale_and_minimum(block.scales, i / 32);
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s.scale);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s.minimum);
    return scale * static_cast<float>(nibble(block.nibbles, i)) - minimum;
  }

  struct Raw {
    Ints nibbles[8];
  };
  static Raw load(const Panel& panel, uint32_t group) {
    Raw raw;
    Base::template load_bytes<8>(panel, group, offsetof(BlockQ4_K, nibbles) + group % 8 * 16,
                                 raw.nibbles);
    return raw;
  }
  template <uint32_t kIndex>
  static void codes(const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) out[j] = Base::template fields<4 * kIndex, 4>(raw.nibbles[j]);
  }
};

template <class Isa>
struct Q5_K : SixBitScales<Isa, Q5_K<Isa>, BlockQ5_K> {
  using Base = SixBitScales<Isa, Q5_K<Isa>, BlockQ5_K>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = 13;
  static constexpr uint32_t kLargestCode = 31, kSpan = 8;

  static float weight(const BlockQ5_K& block, uint32_t i) {
    const ScaleAndMinimum s = scale_and_minimum(block.scales, i / 32);
    const uint32_t code = nibble(block.nibbles, i) | one_bit(block.high, i) << 4;
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s.scale);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s.minimum);
    return scale * static_cast<float>(code) - minimum;
  }

  struct Raw {
    Ints nibbles[32], high[8];
  };
  static Raw load(const Panel& panel, uint32_t group) {
    Raw raw;
    Base::template load_bytes<32>(panel, group, offsetof(BlockQ5_K, nibbles), raw.nibbles);
    Base::template load_bytes<8>(panel, group, offsetof(BlockQ5_K, high), raw.high);
    return raw;
  }
  template <uint32_t kIndex>
  static void codes(const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) {
      const Ints low = Base::template fields<kIndex % 2 * 4, 4>(raw.nibbles[kIndex / 2 * 8 + j]);
      const Ints high = Base::template fields<kIndex, 1>(raw.high[j]);
      out[j] = Columns::bit_or(low, Columns::template shift_left<4>(high));
    }
  }
};

// The low nibbles lie otherwise than in Q4_K: 64 bytes hold 128 weights, low nibbles first.
template <class Isa>
struct Q6_K : KBlocks<Isa, Q6_K<Isa>, BlockQ6_K> {
  using Base = KBlocks<Isa, Q6_K<Isa>, BlockQ6_K>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = 14;
  static constexpr uint32_t kDots = 2, kLargestCode = 63, kOffset = 32, kSpan = 4;

  static float weight(const BlockQ6_K& block, uint32_t i) {
    const uint32_t low = block.low[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15u;
    const uint32_t code = low | two_bits(block.high, i) << 4;
    const float scale =
        Isa::half_to_float(block.d) * static_cast<float>(int32_t{block.scales[i / 16]});
    return scale * static_cast<float>(static_cast<int32_t>(code) - 32);
  }

  static void scales(const Panel& panel, uint32_t group, typename Base::Scales& out) {
    Ints end[4], bytes[4];
    Base::template load_bytes<4>(panel, group, sizeof(BlockQ6_K) - 16, end);
    const auto d = Columns::low_halves(Columns::template shift_right<16>(end[3]));
    Base::template load_bytes<4>(panel, group, offsetof(BlockQ6_K, scales), bytes);
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      typename Base::Floats four[4];
      // int8 as unsigned numbers 128 too large
      const Ints raised = Columns::bit_xor(bytes[quarter], Columns::integers(0x80808080u));
      Base::template scale_bytes_less<128>(raised, d, four);
      Base::store_scales(four, quarter, out);
    }
  }

  struct Raw {
    Ints low[16], high[8];
  };
  static Raw load(const Panel& panel, uint32_t group) {
    Raw raw;
    const uint32_t half = group % 8 / 4;
    Base::template load_bytes<16>(panel, group, offsetof(BlockQ6_K, low) + 64 * half, raw.low);
    Base::template load_bytes<8>(panel, group, offsetof(BlockQ6_K, high) + 32 * half, raw.high);
    return raw;
  }
  template <uint32_t kIndex>
  static void codes(const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) {
      const Ints low = Base::template fields<kIndex / 2 * 4, 4>(raw.low[kIndex % 2 * 8 + j]);
      const Ints high = Base::template fields<2 * kIndex, 2>(raw.high[j]);
      out[j] = Columns::bit_or(low, Columns::template shift_left<4>(high));
    }
  }
};

}  // namespace akunu::cpu
