// The K formats: 256 weights in a super-block, with one or two float16 factors (d, dmin) for all of them
// and a small whole number as scale (and minimum) for every 16 or 32. Layouts are those of ggml's
// block_q2_K to block_q6_K.
//
// 1. What it does. Decodes super-blocks for the micro-kernel: the members that panel.h asks of a format
//    (`open`, `load`, `codes`, `scale`, `minima`), and `weight`, one weight alone.
// 2. What bounds it. Instructions: of one row in cache, those that shift and mask codes and scales.
// 3. What is done about it. Scales and codes of direct row tiles stay at the bits where they lie (`in
//    place`): they are powers of two too large, which a factor takes back. Bits that several groups share
//    are read once and shifted on (`next_bits`, `next_scales`).
// 4. Where to change it. One format: its struct. What formats with 16 scales share: HalfGroupScales; Q4_K
//    and Q5_K: SixBitScales; reading words of a panel: formats_blocks.h.
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

// What the K formats share. Code is unrolled for the groups of one span, half of a super-block or a
// fourth; a loop goes over the spans.
template <class Isa, class Trait, class Layout>
struct KBlocks : Blocks<Isa, Trait, Layout, 256> {
  using Base = Blocks<Isa, Trait, Layout, 256>;
  using Ints = typename Base::Ints;
  static constexpr bool kSuperBlock = true;
  static constexpr uint32_t kSpan = 4;

 protected:
  // For bytes with kBits of each span: moves the bits of the next span to where those of this span were.
  template <int kBits>
  static void next_bits(Ints (&bytes)[8]) {
    for (Ints& four : bytes) four = Base::Columns::template shift_right<kBits>(four);
  }
};

// What formats with 16 scales share, two for each group of 32: a register has four of them, a byte each.
template <class Isa, class Trait, class Layout>
struct HalfGroupScales : KBlocks<Isa, Trait, Layout> {
  using Base = KBlocks<Isa, Trait, Layout>;
  using Columns = typename Base::Columns;
  static constexpr uint32_t kDots = 2;

 protected:
  static void next_scales(typename Base::Ints (&bytes)[4]) {
    bytes[0] = bytes[2];
    bytes[1] = bytes[3];
  }
  // The bit at which the scale of a span's i-th group begins; that of the group's other half is
  // eight bits further.
  template <uint32_t kIndex, int kShift>
  static constexpr int place_of = kIndex % 2 * 16 + kShift;
  // kBits from bit kShift on of both halves' bytes for a span's i-th group, as floats.
  template <uint32_t kIndex, int kShift, int kBits>
  static void both_numbers(const typename Base::Ints (&bytes)[4], typename Base::Floats* out) {
    constexpr int kBit = place_of<kIndex, kShift>;
    const typename Base::Ints four = bytes[kIndex / 2];
    out[0] = Columns::to_float(Base::template number<kBit, kBits>(four));
    out[1] = Columns::to_float(Base::template number<kBit + 8, kBits>(four));
  }
  // The same without shifting, times 2 ^ place_of<kIndex, kShift>: one shift for two groups instead of seven.
  template <uint32_t kIndex, int kShift, int kBits>
  static void both_in_place(const typename Base::Ints (&bytes)[4], typename Base::Floats* out) {
    constexpr int kBit = place_of<kIndex, kShift>;
    static_assert(kBit + kBits < 32, "no sign");
    const typename Base::Ints four = bytes[kIndex / 2];
    const typename Base::Ints mask = Columns::integers(((1u << kBits) - 1) << kBit);
    out[0] = Columns::to_float(Columns::bit_and(four, mask));
    out[1] = Columns::to_float(Columns::bit_and(Columns::template shift_right<8>(four), mask));
  }
  template <uint32_t kIndex, int kBits>
  static void both_signed_numbers(const typename Base::Ints (&bytes)[4],
                                  typename Base::Floats* out) {
    constexpr int kBit = place_of<kIndex, 0>;
    const typename Base::Ints four = bytes[kIndex / 2];
    out[0] = Columns::to_float(Base::template signed_number<kBit, kBits>(four));
    out[1] = Columns::to_float(Base::template signed_number<kBit + 8, kBits>(four));
  }
};

template <class Isa>
struct Q2_K : HalfGroupScales<Isa, Q2_K<Isa>, BlockQ2_K> {
  using Base = HalfGroupScales<Isa, Q2_K<Isa>, BlockQ2_K>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::q2_k);
  static constexpr uint32_t kLargestCode = 3;
  static constexpr int32_t kLowestScale = 0, kHighestScale = 15;
  static constexpr bool kHasMinimum = true;

  static float weight(const BlockQ2_K& block, uint32_t i) {
    const uint8_t s = block.scales[i / 16];
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s & 15);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s >> 4);
    return scale * static_cast<float>(two_bits(block.low, i)) - minimum;
  }

  // Whether scales and minima stay in place. It needs one register more for two groups, and pays only
  // where codes stay in place too: then one factor corrects both. Otherwise it costs a multiplication
  // more per group.
  static constexpr bool kInPlace = Columns::Policy::kScalesInPlace;
  template <uint32_t kIndex>
  static constexpr float kMinimumFactor = kInPlace ? 1 << Base::template place_of<kIndex, 4> : 1;

  struct Block {
    Ints scales[4];
    typename Base::Floats d, minus_dmin[2];  // for minima of even and of odd groups
  };
  static Block open(const auto& panel, uint32_t group) {
    Block block;
    Ints end[4];
    Base::template load_words<4>(panel, group, 0, block.scales);
    Base::template load_words<4>(panel, group, sizeof(BlockQ2_K) - 16, end);
    block.d = Columns::low_halves(end[3]);
    const auto dmin = Columns::low_halves(Columns::template shift_right<16>(end[3]));
    block.minus_dmin[0] = Columns::multiply(dmin, Columns::broadcast(-1.0f / kMinimumFactor<0>));
    block.minus_dmin[1] = Columns::multiply(dmin, Columns::broadcast(-1.0f / kMinimumFactor<1>));
    return block;
  }
  template <uint32_t kIndex>
  static void scale(const Block& block, auto& group) {
    Base::template both_numbers<kIndex, 0, 4>(block.scales, group.scale);
  }
  template <uint32_t kIndex>
  static constexpr uint32_t kScaleFactor = kInPlace ? 1u << Base::template place_of<kIndex, 0> : 1;
  template <uint32_t kIndex>
  static void direct_scale(const Block& block, auto& group) {
    if constexpr (kInPlace)
      Base::template both_in_place<kIndex, 0, 4>(block.scales, group.scale);
    else
      scale<kIndex>(block, group);
  }
  template <uint32_t kIndex>
  static void minima(const Block& block, typename Base::Floats (&both)[2]) {
    if constexpr (kInPlace)
      Base::template both_in_place<kIndex, 4, 4>(block.scales, both);
    else
      Base::template both_numbers<kIndex, 4, 4>(block.scales, both);
    for (auto& minimum : both) minimum = Columns::multiply(minimum, block.minus_dmin[kIndex % 2]);
  }
  static void next_span(Block& block) { Base::next_scales(block.scales); }

  struct Raw {
    Ints low[8];
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t span, Raw& raw) {
    if constexpr (kIndex == 0)
      Base::template load_words<8>(panel, group, offsetof(BlockQ2_K, low) + 32 * span, raw.low);
  }
  template <uint32_t kIndex>
  static void codes(const Block&, const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) out[j] = Base::template fields<2 * kIndex, 2>(raw.low[j]);
  }
  template <uint32_t kIndex>
  static constexpr uint32_t kCodeFactor = Base::kWholeBytes ? 1u << 2 * kIndex : 1;
  template <uint32_t kIndex, uint32_t>
  static void direct_codes(const Block& block, const Raw& raw, Ints (&out)[8]) {
    if constexpr (kCodeFactor<kIndex> == 1) return codes<kIndex>(block, raw, out);
    for (uint32_t j = 0; j < 8; ++j)
      out[j] = Columns::bit_and(raw.low[j], Base::every_byte(3 * kCodeFactor<kIndex>));
  }
};

template <class Isa>
struct Q3_K : HalfGroupScales<Isa, Q3_K<Isa>, BlockQ3_K> {
  using Base = HalfGroupScales<Isa, Q3_K<Isa>, BlockQ3_K>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::q3_k);
  static constexpr uint32_t kLargestCode = 7, kOffset = 4;
  static constexpr int32_t kLowestScale = -32, kHighestScale = 31;

  static float weight(const BlockQ3_K& block, uint32_t i) {
    const uint32_t code = two_bits(block.low, i) | one_bit(block.high, i) << 2;
    const float scale =
        Isa::half_to_float(block.d) * static_cast<float>(scale_q3_k(block.scales, i / 16));
    return scale * static_cast<float>(static_cast<int32_t>(code) - 4);
  }

  struct Block {
    Ints high[8];
    Ints scales[4];  // six bits of each byte, with a sign
    typename Base::Floats d;
  };
  static Block open(const auto& panel, uint32_t group) {
    Block block;
    Base::template load_words<8>(panel, group, offsetof(BlockQ3_K, high), block.high);
    // The last 16 bytes: two that belong to `low`, the twelve of `scales`, d.
    Ints end[4], s[3];
    Base::template load_words<4>(panel, group, sizeof(BlockQ3_K) - 16, end);
    for (uint32_t j = 0; j < 3; ++j)
      s[j] = Columns::bit_or(Columns::template shift_right<16>(end[j]),
                             Columns::template shift_left<16>(end[j + 1]));
    block.d = Columns::low_halves(Columns::template shift_right<16>(end[3]));
    block.scales[0] = Base::template fields<0, 4, 0, 2>(s[0], s[2]);
    block.scales[1] = Base::template fields<0, 4, 2, 2>(s[1], s[2]);
    block.scales[2] = Base::template fields<4, 4, 4, 2>(s[0], s[2]);
    block.scales[3] = Base::template fields<4, 4, 6, 2>(s[1], s[2]);
    // They are stored 32 too large. As signed numbers of six bits, that is the sign bit inverted.
    for (Ints& four : block.scales) four = Columns::bit_xor(four, Base::every_byte(32));
    return block;
  }
  template <uint32_t kIndex>
  static void scale(const Block& block, auto& group) {
    Base::template both_signed_numbers<kIndex, 6>(block.scales, group.scale);
  }
  static void next_span(Block& block) {
    Base::next_scales(block.scales);
    Base::template next_bits<4>(block.high);
  }

  struct Raw {
    Ints low[8];
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t span, Raw& raw) {
    if constexpr (kIndex == 0)
      Base::template load_words<8>(panel, group, offsetof(BlockQ3_K, low) + 32 * span, raw.low);
  }
  template <uint32_t kIndex>
  static void codes(const Block& block, const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j)
      out[j] = Base::template fields<2 * kIndex, 2, kIndex, 1>(raw.low[j], block.high[j]);
  }
};

// Scales and minima of Q4_K and Q5_K: the first 16 bytes are d, dmin and the twelve of `scales`.
// They are arrays with a variable index, so the compiler keeps them in memory and each span loads its
// own; shifting them in registers cost four instructions a group.
template <class Isa, class Trait, class Layout>
struct SixBitScales : KBlocks<Isa, Trait, Layout> {
  using Base = KBlocks<Isa, Trait, Layout>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr bool kHasMinimum = true;
  static constexpr uint32_t kSpan = 2;  // whose nibbles share 32 bytes
  static constexpr int32_t kLowestScale = 0, kHighestScale = 63;

  struct Block {
    Ints scales[4], minima[4];  // of each span, in the lower two bytes
    uint32_t span = 0;
    typename Base::Floats d,
        minus_dmin[2];  // for minima of even and odd groups, which stay in place
  };
  static Block open(const auto& panel, uint32_t group) {
    Block block;
    put_scales(panel, group, block);
    return block;
  }
  static void put_scales(const auto& panel, uint32_t group, Block& block) {
    static_assert(offsetof(Layout, d) == 0 && offsetof(Layout, scales) == 4);
    Ints begin[4];
    Base::template load_words<4>(panel, group, 0, begin);
    const auto [halves, first, second, third] = begin;
    block.d = Columns::low_halves(halves);
    const auto dmin = Columns::low_halves(Columns::template shift_right<16>(halves));
    block.minus_dmin[0] = Columns::negate(dmin);
    block.minus_dmin[1] = Columns::multiply(dmin, Columns::broadcast(-1.0f / 256));
    put_spans(Base::template fields<0, 6>(first), block.scales);
    put_spans(Base::template fields<0, 6>(second), block.minima);
    put_spans(Base::template fields<0, 4, 6, 2>(third, first), block.scales + 2);
    put_spans(Base::template fields<4, 4, 6, 2>(third, second), block.minima + 2);
  }
  template <uint32_t kIndex>
  static void scale(const Block& block, auto& group) {
    const Ints two = block.scales[block.span];
    group.scale[0] = Columns::to_float(Base::template number<8 * kIndex, 8>(two));
  }
  // In place only where codes stay in place too (see Q2_K).
  template <uint32_t kIndex>
  static constexpr uint32_t kScaleFactor =
      Trait::template kCodeFactor<kIndex> > 1 ? 1u << 8 * kIndex : 1;
  template <uint32_t kIndex>
  static void direct_scale(const Block& block, auto& group) {
    if constexpr (kScaleFactor<kIndex> > 1)
      group.scale[0] = in_place<kIndex>(block.scales[block.span]);
    else
      scale<kIndex>(block, group);
  }
  template <uint32_t kIndex>
  static void minima(const Block& block, typename Base::Floats (&minimum)[1]) {
    minimum[0] =
        Columns::multiply(in_place<kIndex>(block.minima[block.span]), block.minus_dmin[kIndex]);
  }
  static void next_span(Block& block) { ++block.span; }

 private:
  static void put_spans(Ints bytes, Ints* out) {
    out[0] = bytes;
    out[1] = Columns::template shift_right<16>(bytes);
  }
  // A byte without shifting, times 256 ^ kIndex.
  template <uint32_t kIndex>
  static typename Base::Floats in_place(Ints two) {
    return Columns::to_float(Columns::bit_and(two, Columns::integers(255u << 8 * kIndex)));
  }
};

template <class Isa>
struct Q4_K : SixBitScales<Isa, Q4_K<Isa>, BlockQ4_K> {
  using Base = SixBitScales<Isa, Q4_K<Isa>, BlockQ4_K>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::q4_k);
  static constexpr uint32_t kLargestCode = 15;

  static float weight(const BlockQ4_K& block, uint32_t i) {
    const ScaleAndMinimum s = scale_and_minimum(block.scales, i / 32);
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s.scale);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s.minimum);
    return scale * static_cast<float>(nibble(block.nibbles, i)) - minimum;
  }

  struct Raw {
    Ints nibbles[8];
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t span, Raw& raw) {
    if constexpr (kIndex == 0)
      Base::template load_words<8>(panel, group, offsetof(BlockQ4_K, nibbles) + 32 * span,
                                   raw.nibbles);
  }
  template <uint32_t kIndex>
  static void codes(const auto&, const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) out[j] = Base::template fields<4 * kIndex, 4>(raw.nibbles[j]);
  }
  template <uint32_t kIndex>
  static constexpr uint32_t kCodeFactor = Base::kWholeBytes ? 1u << 4 * kIndex : 1;
  template <uint32_t kIndex, uint32_t>
  static void direct_codes(const auto& block, const Raw& raw, Ints (&out)[8]) {
    if constexpr (kCodeFactor<kIndex> == 1) return codes<kIndex>(block, raw, out);
    for (uint32_t j = 0; j < 8; ++j)
      out[j] = Base::Columns::bit_and(raw.nibbles[j], Base::every_byte(15 * kCodeFactor<kIndex>));
  }
};

template <class Isa>
struct Q5_K : SixBitScales<Isa, Q5_K<Isa>, BlockQ5_K> {
  using Base = SixBitScales<Isa, Q5_K<Isa>, BlockQ5_K>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::q5_k);
  static constexpr uint32_t kLargestCode = 31;

  static float weight(const BlockQ5_K& block, uint32_t i) {
    const ScaleAndMinimum s = scale_and_minimum(block.scales, i / 32);
    const uint32_t code = nibble(block.nibbles, i) | one_bit(block.high, i) << 4;
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s.scale);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s.minimum);
    return scale * static_cast<float>(code) - minimum;
  }

  struct Block : Base::Block {
    Ints high[8];
  };
  static Block open(const auto& panel, uint32_t group) {
    Block block;
    Base::put_scales(panel, group,
                     block);  // not copied: a load that spans two stores is not forwarded
    Base::template load_words<8>(panel, group, offsetof(BlockQ5_K, high), block.high);
    return block;
  }
  static void next_span(Block& block) {
    Base::next_span(block);
    Base::template next_bits<2>(block.high);
  }

  struct Raw {
    Ints nibbles[8];
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t span, Raw& raw) {
    if constexpr (kIndex == 0)
      Base::template load_words<8>(panel, group, offsetof(BlockQ5_K, nibbles) + 32 * span,
                                   raw.nibbles);
  }
  template <uint32_t kIndex>
  static void codes(const Block& block, const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j)
      out[j] = Base::template fields<4 * kIndex, 4, kIndex, 1>(raw.nibbles[j], block.high[j]);
  }
};

// The order of the nibbles differs from Q4_K's: 64 bytes hold 128 weights, the first 64 of them in the
// low nibbles.
template <class Isa>
struct Q6_K : HalfGroupScales<Isa, Q6_K<Isa>, BlockQ6_K> {
  using Base = HalfGroupScales<Isa, Q6_K<Isa>, BlockQ6_K>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::q6_k);
  static constexpr uint32_t kLargestCode = 63, kOffset = 32;
  static constexpr int32_t kLowestScale = -128, kHighestScale = 127;

  static float weight(const BlockQ6_K& block, uint32_t i) {
    const uint32_t low = block.low[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15u;
    const uint32_t code = low | two_bits(block.high, i) << 4;
    const float scale =
        Isa::half_to_float(block.d) * static_cast<float>(int32_t{block.scales[i / 16]});
    return scale * static_cast<float>(static_cast<int32_t>(code) - 32);
  }

  struct Block {
    Ints scales[4];  // int8
    typename Base::Floats d;
  };
  static Block open(const auto& panel, uint32_t group) {
    Block block;
    Ints end[4];
    Base::template load_words<4>(panel, group, offsetof(BlockQ6_K, scales), block.scales);
    Base::template load_words<4>(panel, group, sizeof(BlockQ6_K) - 16, end);
    block.d = Columns::low_halves(Columns::template shift_right<16>(end[3]));
    return block;
  }
  template <uint32_t kIndex>
  static void scale(const Block& block, auto& group) {
    Base::template both_signed_numbers<kIndex, 8>(block.scales, group.scale);
  }
  static void next_span(Block& block) { Base::next_scales(block.scales); }

  struct Raw {
    Ints low[16], high[8];
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t span, Raw& raw) {
    if constexpr (kIndex < 2)
      Base::template load_words<8>(panel, group, offsetof(BlockQ6_K, low) + 64 * span + 32 * kIndex,
                                   raw.low + 8 * kIndex);
    if constexpr (kIndex == 0)
      Base::template load_words<8>(panel, group, offsetof(BlockQ6_K, high) + 32 * span, raw.high);
  }
  template <uint32_t kIndex>
  static void codes(const Block&, const Raw& raw, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j)
      out[j] = Base::template fields<kIndex / 2 * 4, 4, 2 * kIndex, 2>(raw.low[kIndex % 2 * 8 + j],
                                                                       raw.high[j]);
  }
};

}  // namespace akunu::cpu
