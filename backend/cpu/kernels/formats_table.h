// Formats whose codes are places in a table of 16 numbers, as ggml lays them out: IQ4_NL and IQ4_XS,
// and the floats of four bits, MXFP4 (OCP's microscaling) and NVFP4 (NVIDIA's).
//
// 1. What it does. Decodes blocks for the micro-kernel: the members that panel.h asks of a format.
// 2. What bounds it. As formats_blocks.h: transposing and shifting. A level looks up 16 bytes or more with
//    one instruction (Columns::look_up).
// 3. Where to change it. One format: its struct. The tables: core/tables/codes.h.
#pragma once

#include "core/tables/codes.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_blocks.h"

namespace akunu::cpu {

struct BlockIQ4_NL {
  uint16_t d;
  uint8_t nibbles[16];
};
struct BlockIQ4_XS {
  uint16_t d;
  uint16_t high;   // bits 2 g and 2 g + 1: the upper two bits of the scale of group g
  uint8_t low[4];  // byte i: the lower four bits of the scales of groups 2 i and 2 i + 1
  uint8_t nibbles[128];
};
struct BlockMXFP4 {
  uint8_t exponent;
  uint8_t nibbles[16];
};
struct BlockNVFP4 {
  uint8_t scales[4];  // of 16 weights each
  uint8_t nibbles[32];
};
static_assert(sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136 && sizeof(BlockMXFP4) == 17 &&
              sizeof(BlockNVFP4) == 36);

// x = d * value, exact.
template <class Isa>
struct IQ4_NL : PairsOfBlocks<Isa, IQ4_NL<Isa>, BlockIQ4_NL> {
  using Base = PairsOfBlocks<Isa, IQ4_NL<Isa>, BlockIQ4_NL>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::iq4_nl);
  static constexpr bool kSigned = true;
  static constexpr uint32_t kRotation = Base::template rotation<16>();

  static float weight(const BlockIQ4_NL& block, uint32_t i) {
    return Isa::half_to_float(block.d) * static_cast<float>(kIq4Values[code4(block.nibbles, i)]);
  }

  static void to_codes(const Ints* words, Ints (&out)[8]) {
    Base::nibbles(words, out);
    for (Ints& codes : out) codes = Base::Columns::look_up(codes, kIq4Values);
  }
};

// x = d * (scale - 32) * value, exact; scales have six bits.
template <class Isa>
struct IQ4_XS : Blocks<Isa, IQ4_XS<Isa>, BlockIQ4_XS, 256> {
  using Base = Blocks<Isa, IQ4_XS<Isa>, BlockIQ4_XS, 256>;
  using Columns = typename Base::Columns;
  using Floats = typename Base::Floats;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::iq4_xs);
  static constexpr bool kSigned = true, kSuperBlock = true;
  static constexpr uint32_t kSpan = 2;
  static constexpr uint32_t kLargestCode = 127;  // in magnitude
  static constexpr int32_t kLowestScale = -32, kHighestScale = 31;

  static float weight(const BlockIQ4_XS& block, uint32_t i) {
    const uint32_t g = i / 32;
    const uint32_t low = block.low[g / 2] >> g % 2 * 4 & 15u, high = block.high >> 2 * g & 3u;
    const float scale = static_cast<float>(static_cast<int32_t>(low | high << 4) - 32);
    const uint32_t code = block.nibbles[16 * g + i % 16] >> i % 32 / 16 * 4 & 15u;
    return Isa::half_to_float(block.d) * scale * static_cast<float>(kIq4Values[code]);
  }

  struct Block {
    Floats scales[8], d;
    uint32_t span = 0;
  };
  static Block open(const auto& panel, uint32_t group) {
    Ints begin[4];
    Base::template load_words<4>(panel, group, 0, begin);
    Block block;
    block.d = Columns::low_halves(begin[0]);
    put_scales<0>(begin[0], begin[1], block.scales);
    return block;
  }
  template <uint32_t kIndex>
  static void scale(const Block& block, auto& group) {
    group.scale[0] = block.scales[kSpan * block.span + kIndex];
  }
  static void next_span(Block& block) { ++block.span; }

  struct Raw {
    Ints nibbles[8];
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t span, Raw& raw) {
    if constexpr (kIndex == 0)
      Base::template load_words<8>(panel, group, offsetof(BlockIQ4_XS, nibbles) + 32 * span,
                                   raw.nibbles);
  }
  template <uint32_t kIndex>
  static void codes(const Block&, const Raw& raw, Ints (&out)[8]) {
    Base::nibbles(raw.nibbles + 4 * kIndex, out);
    for (Ints& codes : out) codes = Columns::look_up(codes, kIq4Values);
  }

 private:
  // Subtracts 32 from each scale: of a signed number of six bits, that inverts the uppermost bit.
  template <uint32_t kGroup>
  static void put_scales(Ints high, Ints low, Floats (&out)[8]) {
    const Ints upper = Base::template number<16 + 2 * kGroup, 2>(high);
    const Ints six = Columns::bit_or(Base::template number<4 * kGroup, 4>(low),
                                     Columns::template shift_left<4>(upper));
    out[kGroup] = Columns::to_float(
        Base::template signed_number<0, 6>(Columns::bit_xor(six, Columns::integers(32))));
    if constexpr (kGroup < 7) put_scales<kGroup + 1>(high, low, out);
  }
};

// Codes of the floats of four bits: 12 more than twice the float, so that they have no sign.
constexpr uint32_t kFp4Offset = 12;
static constexpr int8_t kFp4Codes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
static constexpr bool fp4_codes_are_right() {
  for (uint32_t i = 0; i < 16; ++i)
    if (kFp4Codes[i] != kFp4Values[i] + 12) return false;
  return true;
}
static_assert(fp4_codes_are_right());

// x = 2 ^ (exponent - 128) * value, exact. Blocks are read in pairs: 32 bytes from the first exponent
// on have both exponents and all codes of the first block, one byte off. Each block's exponent read
// with 16 bytes of its own took as long as its codes.
template <class Isa>
struct MXFP4 : Blocks<Isa, MXFP4<Isa>, BlockMXFP4, 32> {
  using Base = Blocks<Isa, MXFP4<Isa>, BlockMXFP4, 32>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::mxfp4);
  static constexpr uint32_t kLargestCode = 24, kOffset = kFp4Offset;
  static constexpr uint32_t kGroups = 2, kSpan = 2;
  static constexpr uint64_t kNibbles = offsetof(BlockMXFP4, nibbles), kOpenedBytes = 32;

  static float weight(const BlockMXFP4& block, uint32_t i) {
    const uint32_t e = block.exponent;
    const uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;  // below 2 ^ -126 no exponent
    float scale;
    __builtin_memcpy(&scale, &bits, sizeof(scale));
    return scale * static_cast<float>(kFp4Values[code4(block.nibbles, i)]);
  }

  struct Block {
    typename Base::Floats scale[2];
    Ints nibbles[4];  // of the first
  };
  static Block open(const auto& panel, uint32_t group) {
    Ints read[8];
    Base::template load_words<kOpenedBytes / 4>(panel, group, 0, read);
    Block block;
    block.scale[0] = power_of_two<0>(read[0]);
    block.scale[1] = power_of_two<1>(read[4]);
    for (uint32_t i = 0; i < 4; ++i)
      block.nibbles[i] = Columns::bit_or(Columns::template shift_right<8>(read[i]),
                                         Columns::template shift_left<24>(read[i + 1]));
    return block;
  }
  // The last block of a row with an odd number of them.
  static Block open_one(const auto& panel, uint32_t group) {
    Ints begin[4];  // of which only the exponent is used
    Base::template load_words<4>(static_cast<const Panel&>(panel), group, 0, begin);
    Block block;
    block.scale[0] = power_of_two<0>(begin[0]);
    Base::template load_words<4>(panel, group, kNibbles, block.nibbles);
    return block;
  }
  struct Raw {
    Ints nibbles[4];  // of the second
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t, Raw& raw) {
    if constexpr (kIndex == 1) {
      Base::template load_words<4>(static_cast<const Panel&>(panel), group,
                                   sizeof(BlockMXFP4) + kNibbles, raw.nibbles);
      // `open` has prefetched as much as it read: all but the last two bytes of each column. Without
      // the line where those are, one in seventeen was waited for.
      Base::prefetch(panel, Base::at(panel, group) + kOpenedBytes, 0, raw.nibbles[0]);
    }
  }
  template <uint32_t kIndex>
  static void codes(const Block& block, const Raw& raw, Ints (&out)[8]) {
    Base::nibbles(kIndex == 0 ? block.nibbles : raw.nibbles, out);
    for (Ints& codes : out) codes = Columns::look_up(codes, kFp4Codes);
  }
  template <uint32_t kIndex>
  static void scale(const Block& block, auto& group) {
    group.scale[0] = block.scale[kIndex];
  }

 private:
  // From the exponent in a byte. Two halves of it are exponents of floats, whatever it is.
  template <int kByte>
  static typename Base::Floats power_of_two(Ints word) {
    const Ints bias = Columns::integers(63);
    const Ints half = Base::template number<8 * kByte + 1, 7>(word);
    const Ints rest = Columns::add(half, Base::template number<8 * kByte, 1>(word));
    return Columns::multiply(power(Columns::add(half, bias)), power(Columns::add(rest, bias)));
  }
  static typename Base::Floats power(Ints exponent) {
    return Columns::as_floats(Columns::template shift_left<23>(exponent));
  }
};

// x = scale * value, exact; a scale is a float of eight bits without a sign (E4M3), for 16 weights.
// Of those, the first eight are in low nibbles.
template <class Isa>
struct NVFP4 : Blocks<Isa, NVFP4<Isa>, BlockNVFP4, 64> {
  using Base = Blocks<Isa, NVFP4<Isa>, BlockNVFP4, 64>;
  using Columns = typename Base::Columns;
  using Floats = typename Base::Floats;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::nvfp4);
  static constexpr uint32_t kDots = 2;
  static constexpr uint32_t kLargestCode = 24, kOffset = kFp4Offset;
  static constexpr uint32_t kNaN = 0x7f;  // the scale that is no number counts as 0
  // A half with the same bits is 2 ^ 8 smaller, and the table's numbers are twice the floats.
  static constexpr float kFactor = 128.0f;

  static float weight(const BlockNVFP4& block, uint32_t i) {
    const uint32_t bits = block.scales[i / 16];
    const uint32_t code = block.nibbles[i / 16 * 8 + i % 8] >> i % 16 / 8 * 4 & 15u;
    if (bits == kNaN) return 0.0f;
    const float scale = Isa::half_to_float(static_cast<uint16_t>((bits & 0x7f) << 7)) * kFactor;
    return scale * static_cast<float>(kFp4Values[code]);
  }

  struct Block {
    Floats scales[4];
    Ints nibbles[8];
  };
  static Block open(const auto& panel, uint32_t group) {
    Ints words[9];
    Base::template load_words<9>(panel, group, 0, words);
    Block block;
    put_scales<0>(words[0], block.scales);
    for (uint32_t i = 0; i < 8; ++i) block.nibbles[i] = words[1 + i];
    return block;
  }
  // Never called, since rows are whole blocks.
  static Block open_one(const auto& panel, uint32_t group) { return open(panel, group); }
  template <uint32_t kIndex>
  static void codes(const Block& block, const auto&, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) {
      const Ints bytes = block.nibbles[4 * kIndex + j / 4 * 2 + j % 2];
      const Ints places =
          j % 4 < 2 ? Base::template fields<0, 4>(bytes) : Base::template fields<4, 4>(bytes);
      out[j] = Columns::look_up(places, kFp4Codes);
    }
  }
  template <uint32_t kIndex>
  static void scale(const Block& block, auto& group) {
    group.scale[0] = block.scales[2 * kIndex];
    group.scale[1] = block.scales[2 * kIndex + 1];
  }

 private:
  template <uint32_t kByte>
  static void put_scales(Ints word, Floats (&out)[4]) {
    const Ints byte = Base::template number<8 * kByte, 8>(word);
    const Ints half = Columns::template shift_left<7>(Base::template number<8 * kByte, 7>(word));
    // 0 where the byte is kNaN, else 1.
    const Ints differs = Columns::bit_xor(byte, Columns::integers(kNaN));
    const Ints counts =
        Columns::template shift_right<8>(Columns::add(differs, Columns::integers(255)));
    out[kByte] = Columns::multiply(
        Columns::low_halves(half),
        Columns::multiply(Columns::to_float(counts), Columns::broadcast(kFactor)));
    if constexpr (kByte < 3) put_scales<kByte + 1>(word, out);
  }
};

}  // namespace akunu::cpu
