// Formats whose codes are rows of a grid, as ggml lays them out: IQ2_XXS, IQ2_XS and IQ2_S (8
// weights a row, of three magnitudes), IQ3_XXS and IQ3_S (4 weights, of eight). 256 weights in a
// super-block; signs are apart.
//
//   value    d * kFactor * scale[j] * (+ or -) magnitude, j = i / 32, or i / 16 where kDots is 2;
//            scales are odd
//
// 1. What it does. Decodes super-blocks for the micro-kernel: the members that panel.h asks of a format.
//    All products are exact.
// 2. What bounds it. Looking up grid rows: one scalar load for every four or eight weights.
// 3. What is done about it. The grid rows of a panel are looked up one after the other, in scalar code,
//    into memory that stays in L1; signs are applied in vectors. Codes are magnitude + kOffset, so that
//    kOffset - magnitude is a code too.
// 4. What was tried and did not pay. Gather instructions: slow on processors that are patched against
//    leaks of their data.
// 5. Where to change it. One format: its struct, with the members listed at GridBlocks. The grids:
//    core/tables/.
#pragma once

#include "core/tables/iq2_s_grid.h"
#include "core/tables/iq2_xs_grid.h"
#include "core/tables/iq2_xxs_grid.h"
#include "core/tables/iq3_s_grid.h"
#include "core/tables/iq3_xxs_grid.h"
#include "cpu/kernels/formats_blocks.h"

namespace akunu::cpu {

struct BlockIQ2_XXS {
  uint16_t d;
  uint8_t groups
      [64];  // of each group of 32: four row numbers, then 28 bits of signs and four of the scale
};
struct BlockIQ2_XS {
  uint16_t d;
  uint16_t rows[32];  // a row number of nine bits, and seven bits of signs
  uint8_t scales[8];  // two in each byte
};
struct BlockIQ2_S {
  uint16_t d;
  uint8_t rows[32];  // row numbers, the lower eight bits
  uint8_t signs[32];
  uint8_t high[8];  // the upper two bits, of four row numbers in each byte
  uint8_t scales[8];
};
struct BlockIQ3_XXS {
  uint16_t d;
  uint8_t rows[64];
  uint8_t signs[32];  // of each group of 32: 28 bits of signs, and four of the scale
};
struct BlockIQ3_S {
  uint16_t d;
  uint8_t rows[64];  // row numbers, the lower eight bits
  uint8_t high[8];   // the ninth bit, of eight row numbers in each byte
  uint8_t signs[32];
  uint8_t scales[4];
};
static_assert(sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74 && sizeof(BlockIQ2_S) == 82 &&
              sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ3_S) == 110);

// A grid with a byte for each weight: a magnitude, and `kOffset`, a power of two above all of them.
template <class Row, uint32_t kRows>
struct Grid {
  Row rows[kRows];
};
template <class Row, uint32_t kOffset, uint32_t kRows>
static constexpr Grid<Row, kRows> expanded(const uint16_t (&packed)[kRows],
                                           const uint8_t* magnitudes) {
  constexpr uint32_t kBits = sizeof(Row) == 8 ? 2 : 3;
  Grid<Row, kRows> grid{};
  for (uint32_t r = 0; r < kRows; ++r)
    for (uint32_t i = 0; i < sizeof(Row); ++i) {
      const uint32_t place = packed[r] >> kBits * i & ((1u << kBits) - 1);
      grid.rows[r] |= static_cast<Row>(magnitudes[place] | kOffset) << 8 * i;
    }
  return grid;
}
constexpr uint8_t kIq2Magnitudes[] = {8, 25, 43};
constexpr uint8_t kIq3XxsMagnitudes[] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr uint8_t kIq3SMagnitudes[] = {1, 3, 5, 7, 9, 11, 13, 15};
static constexpr auto kRowsIQ2_XXS = expanded<uint64_t, 64>(kIq2XxsGrid, kIq2Magnitudes);
static constexpr auto kRowsIQ2_XS = expanded<uint64_t, 64>(kIq2XsGrid, kIq2Magnitudes);
static constexpr auto kRowsIQ2_S = expanded<uint64_t, 64>(kIq2SGrid, kIq2Magnitudes);
static constexpr auto kRowsIQ3_XXS = expanded<uint32_t, 64>(kIq3XxsGrid, kIq3XxsMagnitudes);
static constexpr auto kRowsIQ3_S = expanded<uint32_t, 16>(kIq3SGrid, kIq3SMagnitudes);

// Eight signs of which seven bits are stored: the number of set bits is even, which gives the eighth.
static inline uint32_t eight_signs(uint32_t seven) {
  return seven | static_cast<uint32_t>(__builtin_parity(seven)) << 7;
}

// What they share. A Trait has
//   row(block, r)            the grid row of the r-th row number of a super-block
//   put_rows(block, g, out)  all rows of group g, byte by byte
//   signs_of(block, eight)   the signs of eight weights, bit i of weight i
//   scale_of(block, j)       odd, 1 to 31
//   kFactor, kLargest        the largest magnitude
//   put_signs_and_scales(panel, group, block)
//                            fills block.signs and block.scales for all columns of a panel
// kScales: of a super-block. kAbove: kOffset, a power of two above all magnitudes.
template <class Isa, class Trait, class Layout, uint32_t kScales, uint32_t kAbove>
struct GridBlocks : Blocks<Isa, Trait, Layout, 256> {
  using Base = Blocks<Isa, Trait, Layout, 256>;
  using Columns = typename Base::Columns;
  using Floats = typename Base::Floats;
  using Ints = typename Base::Ints;
  static constexpr bool kSuperBlock = true;
  static constexpr uint32_t kDots = kScales / 8, kSpan = 2;
  static constexpr uint32_t kOffset = kAbove;
  static constexpr int32_t kLowestScale = 1, kHighestScale = 31;

  static float weight(const Layout& block, uint32_t i) {
    const auto row = Trait::row(block, i / kRowWeights<decltype(Trait::row(block, 0))>);
    const uint32_t byte = static_cast<uint32_t>(row >> i % sizeof(row) * 8) & 0xff;
    const float magnitude = static_cast<float>(byte ^ kOffset);
    const float factor = Isa::half_to_float(block.d) * Trait::kFactor;
    const float scale = static_cast<float>(Trait::scale_of(block, i / (256 / kScales)));
    const bool is_negative = Trait::signs_of(block, i / 8) >> i % 8 & 1u;
    return factor * scale * (is_negative ? -magnitude : magnitude);
  }

  struct Block {
    Ints signs[8];  // of each group; bit i is set where weight i is negative
    Floats scales[kScales], d;
    uint32_t span = 0;
  };
  static Block open(const auto& panel, uint32_t group) {
    Block block;
    block.d =
        Columns::multiply(Base::load_halves(panel, group, 0), Columns::broadcast(Trait::kFactor));
    Trait::put_signs_and_scales(panel, group, block);
    return block;
  }
  template <uint32_t kIndex>
  static void scale(const Block& block, auto& group) {
    for (uint32_t i = 0; i < kDots; ++i)
      group.scale[i] = block.scales[kDots * (kSpan * block.span + kIndex) + i];
  }
  static void next_span(Block& block) { ++block.span; }

  struct Raw {
    Ints codes[kSpan][8];
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t span, Raw& raw) {
    if constexpr (kIndex == 0) {
      alignas(64) std::byte rows[Columns::kCount][kSpanWeights];
      const std::byte* const first = Base::at(panel, group);
      for (uint32_t c = 0; c < Columns::kCount; ++c) {
        const auto& block = *reinterpret_cast<const Layout*>(first + c * panel.stride);
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kSpan; ++i)
          Trait::put_rows(block, kSpan * span + i, rows[c] + 32 * i);
      }
      for (uint32_t i = 0; i < kSpan; ++i)
        Base::template load_words<8>(Panel{rows[0], kSpanWeights}, 0, 32 * i, raw.codes[i]);
    }
  }
  template <uint32_t kIndex>
  static void codes(const Block& block, const Raw& raw, Ints (&out)[8]) {
    put_on_signs<0>(block.signs[kSpan * block.span + kIndex], raw.codes[kIndex], out);
  }

 protected:
  // Scales from four bits each, the first in the lowest ones.
  template <uint32_t kCount, uint32_t kIndex = 0>
  static void put_scales(Ints word, Floats* out) {
    out[kIndex] = odd(Base::template number<4 * kIndex, 4>(word));
    if constexpr (kIndex + 1 < kCount) put_scales<kCount, kIndex + 1>(word, out);
  }
  // Writes the grid rows of 32 weights to 32 bytes of `out`. `places` has the lower eight bits of kCount
  // row numbers; `with_rest` adds the others. `places` is loaded once, as one number of 64 bits: `out`
  // might overlap it, for all that the compiler knows, so it would load each byte again.
  template <uint32_t kCount>
  static void put_rows_of(const auto& grid, const uint8_t* places, std::byte* out,
                          const auto& with_rest) {
    uint64_t eight = 0;
    __builtin_memcpy(&eight, places, kCount);
    const auto row = [&](uint32_t i) -> uint64_t {
      return grid.rows[with_rest(static_cast<uint32_t>(eight >> 8 * i) & 0xff, i)];
    };
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {  // stores of eight weights at a time
      uint64_t weights = kCount == 4 ? row(i) : row(2 * i) | row(2 * i + 1) << 32;
      asm("" : "+r"(weights));  // or GCC 12 puts several together in vectors, lane by lane
      __builtin_memcpy(out + 8 * i, &weights, sizeof(weights));
    }
  }
  static Floats odd(Ints scale) {
    return Columns::to_float(
        Columns::bit_or(Columns::template shift_left<1>(scale), Columns::integers(1)));
  }
  // Four bytes with seven signs each, and the eighth sign that follows from those.
  static Ints with_eighth(Ints seven) {
    Ints odd = Columns::bit_xor(seven, within_bytes<4>(seven));
    odd = Columns::bit_xor(odd, within_bytes<2>(odd));
    odd = Columns::bit_xor(odd, within_bytes<1>(odd));
    const Ints eighth = Columns::bit_and(odd, Base::every_byte(1));
    return Columns::bit_or(seven, Columns::template shift_left<7>(eighth));
  }
  // Four bytes of eight signs, from the lower 28 bits of a word.
  static Ints signs_of_28(Ints word) {
    return with_eighth(bit_fields<0, 0>(
        word, bit_fields<7, 8>(
                  word, bit_fields<14, 16>(word, bit_fields<21, 24>(word, Columns::integers(0))))));
  }
  // Seven bits at kFrom brought to kTo, beside those that are there.
  template <int kFrom, int kTo>
  static Ints bit_fields(Ints word, Ints others) {
    return Columns::and_or(Base::template moved<kFrom, kTo>(word), Columns::integers(127u << kTo),
                           others);
  }

 private:
  static constexpr uint32_t kSpanWeights = 32 * kSpan;
  template <class Row>
  static constexpr uint32_t kRowWeights = sizeof(Row);

  template <int kBits>
  static Ints within_bytes(Ints bytes) {
    return Columns::bit_and(Columns::template shift_right<kBits>(bytes),
                            Base::every_byte(0xffu >> kBits));
  }
  // kOffset + magnitude becomes kOffset - magnitude where a sign is set; no byte borrows from the
  // next.
  template <int kRegister>
  static void put_on_signs(Ints signs, const Ints (&in)[8], Ints (&out)[8]) {
    const Ints magnitudes = Columns::bit_and(in[kRegister], Base::every_byte(kOffset - 1));
    const Ints some = Columns::bit_and(magnitudes, Columns::bytes_of_bits(signs, kRegister));
    out[kRegister] = Columns::subtract(in[kRegister], Columns::template shift_left<1>(some));
    if constexpr (kRegister < 7) put_on_signs<kRegister + 1>(signs, in, out);
  }
};

template <class Isa>
struct IQ2_XXS : GridBlocks<Isa, IQ2_XXS<Isa>, BlockIQ2_XXS, 8, 64> {
  using Base = GridBlocks<Isa, IQ2_XXS<Isa>, BlockIQ2_XXS, 8, 64>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::iq2_xxs);
  static constexpr uint32_t kLargestCode = 64 + 43;
  static constexpr float kFactor = 0.125f;

  static uint64_t row(const BlockIQ2_XXS& block, uint32_t r) {
    return kRowsIQ2_XXS.rows[block.groups[r / 4 * 8 + r % 4]];
  }
  static void put_rows(const BlockIQ2_XXS& block, uint32_t g, std::byte* out) {
    Base::template put_rows_of<4>(kRowsIQ2_XXS, block.groups + 8 * g, out,
                                  [](uint32_t place, uint32_t) { return place; });
  }
  static uint32_t signs_of(const BlockIQ2_XXS& block, uint32_t eight) {
    return eight_signs(signs_and_scale(block, eight / 4) >> eight % 4 * 7 & 127u);
  }
  static uint32_t scale_of(const BlockIQ2_XXS& block, uint32_t group) {
    return 2 * (signs_and_scale(block, group) >> 28) + 1;
  }
  static void put_signs_and_scales(const auto& panel, uint32_t group, auto& block) {
    Ints words[16];
    Base::template load_words<16>(panel, group, offsetof(BlockIQ2_XXS, groups), words);
    for (uint32_t g = 0; g < 8; ++g) {
      block.signs[g] = Base::signs_of_28(words[2 * g + 1]);
      block.scales[g] = Base::odd(Base::template number<28, 4>(words[2 * g + 1]));
    }
  }

 private:
  static uint32_t signs_and_scale(const BlockIQ2_XXS& block, uint32_t group) {
    uint32_t word;
    __builtin_memcpy(&word, block.groups + 8 * group + 4, sizeof(word));
    return word;
  }
};

template <class Isa>
struct IQ2_XS : GridBlocks<Isa, IQ2_XS<Isa>, BlockIQ2_XS, 16, 64> {
  using Base = GridBlocks<Isa, IQ2_XS<Isa>, BlockIQ2_XS, 16, 64>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::iq2_xs);
  static constexpr uint32_t kLargestCode = 64 + 43;
  static constexpr float kFactor = 0.125f;

  static uint64_t row(const BlockIQ2_XS& block, uint32_t r) {
    return kRowsIQ2_XS.rows[block.rows[r] & 511];
  }
  static void put_rows(const BlockIQ2_XS& block, uint32_t g, std::byte* out) {
    uint64_t four;
    __builtin_memcpy(&four, block.rows + 4 * g, sizeof(four));
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      uint64_t row = kRowsIQ2_XS.rows[four >> 16 * i & 511];
      asm("" : "+r"(row));  // as put_rows_of
      __builtin_memcpy(out + 8 * i, &row, sizeof(row));
    }
  }
  static uint32_t signs_of(const BlockIQ2_XS& block, uint32_t eight) {
    return eight_signs(block.rows[eight] >> 9);
  }
  static uint32_t scale_of(const BlockIQ2_XS& block, uint32_t half) {
    return (block.scales[half / 2] >> half % 2 * 4 & 15u) * 2 + 1;
  }
  static void put_signs_and_scales(const auto& panel, uint32_t group, auto& block) {
    Ints rows[16], end[4];
    Base::template load_words<16>(panel, group, offsetof(BlockIQ2_XS, rows), rows);
    for (uint32_t g = 0; g < 8; ++g) {
      const Ints first = rows[2 * g], second = rows[2 * g + 1];  // two rows each
      block.signs[g] = Base::with_eighth(Base::template bit_fields<9, 0>(
          first,
          Base::template bit_fields<25, 8>(
              first, Base::template bit_fields<9, 16>(second, Base::template bit_fields<25, 24>(
                                                                  second, Columns::integers(0))))));
    }
    Base::template load_words<4>(panel, group, sizeof(BlockIQ2_XS) - 16, end);
    Base::template put_scales<8>(end[2], block.scales);
    Base::template put_scales<8>(end[3], block.scales + 8);
  }
};

template <class Isa>
struct IQ2_S : GridBlocks<Isa, IQ2_S<Isa>, BlockIQ2_S, 16, 64> {
  using Base = GridBlocks<Isa, IQ2_S<Isa>, BlockIQ2_S, 16, 64>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::iq2_s);
  static constexpr uint32_t kLargestCode = 64 + 43;
  static constexpr float kFactor = 0.125f;

  static uint64_t row(const BlockIQ2_S& block, uint32_t r) {
    return kRowsIQ2_S.rows[block.rows[r] | (block.high[r / 4] >> r % 4 * 2 & 3u) << 8];
  }
  static void put_rows(const BlockIQ2_S& block, uint32_t g, std::byte* out) {
    const uint32_t high = uint32_t{block.high[g]} << 8;
    Base::template put_rows_of<4>(
        kRowsIQ2_S, block.rows + 4 * g, out,
        [&](uint32_t place, uint32_t i) { return place | (high >> 2 * i & 0x300); });
  }
  static uint32_t signs_of(const BlockIQ2_S& block, uint32_t eight) { return block.signs[eight]; }
  static uint32_t scale_of(const BlockIQ2_S& block, uint32_t half) {
    return (block.scales[half / 2] >> half % 2 * 4 & 15u) * 2 + 1;
  }
  static void put_signs_and_scales(const auto& panel, uint32_t group, auto& block) {
    Ints end[4];
    Base::template load_words<8>(panel, group, offsetof(BlockIQ2_S, signs), block.signs);
    Base::template load_words<4>(panel, group, sizeof(BlockIQ2_S) - 16, end);
    Base::template put_scales<8>(end[2], block.scales);
    Base::template put_scales<8>(end[3], block.scales + 8);
  }
};

template <class Isa>
struct IQ3_XXS : GridBlocks<Isa, IQ3_XXS<Isa>, BlockIQ3_XXS, 8, 64> {
  using Base = GridBlocks<Isa, IQ3_XXS<Isa>, BlockIQ3_XXS, 8, 64>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::iq3_xxs);
  static constexpr uint32_t kLargestCode = 64 + 62;
  static constexpr float kFactor = 0.25f;

  static uint32_t row(const BlockIQ3_XXS& block, uint32_t r) {
    return kRowsIQ3_XXS.rows[block.rows[r]];
  }
  static void put_rows(const BlockIQ3_XXS& block, uint32_t g, std::byte* out) {
    Base::template put_rows_of<8>(kRowsIQ3_XXS, block.rows + 8 * g, out,
                                  [](uint32_t place, uint32_t) { return place; });
  }
  static uint32_t signs_of(const BlockIQ3_XXS& block, uint32_t eight) {
    return eight_signs(signs_and_scale(block, eight / 4) >> eight % 4 * 7 & 127u);
  }
  static uint32_t scale_of(const BlockIQ3_XXS& block, uint32_t group) {
    return 2 * (signs_and_scale(block, group) >> 28) + 1;
  }
  static void put_signs_and_scales(const auto& panel, uint32_t group, auto& block) {
    Ints words[8];
    Base::template load_words<8>(panel, group, offsetof(BlockIQ3_XXS, signs), words);
    for (uint32_t g = 0; g < 8; ++g) {
      block.signs[g] = Base::signs_of_28(words[g]);
      block.scales[g] = Base::odd(Base::template number<28, 4>(words[g]));
    }
  }

 private:
  static uint32_t signs_and_scale(const BlockIQ3_XXS& block, uint32_t group) {
    uint32_t word;
    __builtin_memcpy(&word, block.signs + 4 * group, sizeof(word));
    return word;
  }
};

template <class Isa>
struct IQ3_S : GridBlocks<Isa, IQ3_S<Isa>, BlockIQ3_S, 8, 16> {
  using Base = GridBlocks<Isa, IQ3_S<Isa>, BlockIQ3_S, 8, 16>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::iq3_s);
  static constexpr uint32_t kLargestCode = 16 + 15;
  static constexpr float kFactor = 1.0f;

  static uint32_t row(const BlockIQ3_S& block, uint32_t r) {
    return kRowsIQ3_S.rows[block.rows[r] | (block.high[r / 8] >> r % 8 & 1u) << 8];
  }
  static void put_rows(const BlockIQ3_S& block, uint32_t g, std::byte* out) {
    const uint32_t high = uint32_t{block.high[g]} << 8;
    Base::template put_rows_of<8>(
        kRowsIQ3_S, block.rows + 8 * g, out,
        [&](uint32_t place, uint32_t i) { return place | (high >> i & 0x100); });
  }
  static uint32_t signs_of(const BlockIQ3_S& block, uint32_t eight) { return block.signs[eight]; }
  static uint32_t scale_of(const BlockIQ3_S& block, uint32_t group) {
    return (block.scales[group / 2] >> group % 2 * 4 & 15u) * 2 + 1;
  }
  static void put_signs_and_scales(const auto& panel, uint32_t group, auto& block) {
    Ints end[4];
    Base::template load_words<8>(panel, group, offsetof(BlockIQ3_S, signs), block.signs);
    Base::template load_words<4>(panel, group, sizeof(BlockIQ3_S) - 16, end);
    Base::template put_scales<8>(end[3], block.scales);
  }
};

}  // namespace akunu::cpu
