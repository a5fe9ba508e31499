// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: 32 weights in a block, as ggml's block_q4_0 to block_q8_0 lay
// them out. Of nibbles, weight i < 16 is the low one of byte i, weight i + 16 the high one.
//
// 1. What it computes. The codes of a block, and its scale (and minimum) as float32.
// 2. What bounds it. As formats_blocks.h says.
// 3. What is done about it. Fifth bits: a shuffle brings the byte to all four codes, and a bit test
//    makes it 16.
// 4. What was tried and did not pay. Fifth bits by a product that spreads four of them (1.3 to 1.55
//    times as slow for one row). docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/kernels/blocks_32.h"
#include "cpu/kernels/formats_blocks.h"

namespace akunu::cpu {

static inline uint32_t code4(const uint8_t (&nibbles)[16], uint32_t i) {
  return i < 16 ? nibbles[i] & 15u : nibbles[i - 16] >> 4;
}
static inline uint32_t code5(const uint8_t (&nibbles)[16], const uint8_t (&high)[4], uint32_t i) {
  return code4(nibbles, i) | (high[i / 8] >> i % 8 & 1u) << 4;
}

// x = d * (code - 8), exact.
template <class Isa>
struct Q4_0 : PairsOfBlocks<Isa, Q4_0<Isa>, BlockQ4_0> {
  using Base = PairsOfBlocks<Isa, Q4_0<Isa>, BlockQ4_0>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::q4_0);
  static constexpr uint32_t kLargestCode = 15, kOffset = 8;
  static constexpr uint32_t kRotation = Base::template rotation<16>();
  template <uint32_t kRows>
  static constexpr uint32_t kUpperFactor = Base::template kUpperNibbleFactor<kRows>;

  static float weight(const BlockQ4_0& block, uint32_t i) {
    const int32_t code = static_cast<int32_t>(code4(block.nibbles, i)) - 8;
    return Isa::half_to_float(block.d) * static_cast<float>(code);
  }

  static void to_codes(const Ints* words, Ints (&out)[8]) { Base::nibbles(words, out); }
};

// x = d * code + m: the product is exact, so one rounding.
template <class Isa>
struct Q4_1 : BlocksWithMinimum<Isa, Q4_1<Isa>, BlockQ4_1> {
  using Base = BlocksWithMinimum<Isa, Q4_1<Isa>, BlockQ4_1>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::q4_1);
  static constexpr uint32_t kLargestCode = 15;
  template <uint32_t kRows>
  static constexpr uint32_t kUpperFactor = Base::template kUpperNibbleFactor<kRows>;

  static float weight(const BlockQ4_1& block, uint32_t i) {
    const float code = static_cast<float>(code4(block.nibbles, i));
    return Isa::half_to_float(block.d) * code + Isa::half_to_float(block.m);
  }

  static void to_codes(const Ints* words, Ints (&out)[8]) { Base::nibbles(words, out); }
};

// What Q5_0 and Q5_1 share: a fifth bit for each of 32 weights, and nibbles.
template <class Blocks>
struct FiveBits : Blocks {
  using Columns = typename Blocks::Columns;
  using Ints = typename Blocks::Ints;
  static constexpr uint32_t kLargestCode = 31;

  static void to_codes(const Ints* words, Ints (&out)[8]) {
    Blocks::nibbles(words + 1, out);
    if constexpr (Columns::Policy::kSetsFifthBits)
      Columns::add_sixteen_where_set(words[0], out);
    else
      add_fifth_bits<0>(words[0], out);
  }

 private:
  // Four neighbouring bits to bit 4 of four bytes: the product puts bit i at bit 8 i as well.
  template <int kRegister>
  static void add_fifth_bits(Ints high, Ints (&out)[8]) {
    const Ints four =
        Columns::bit_and(Columns::template shift_right<4 * kRegister>(high), Columns::integers(15));
    const Ints spread =
        Columns::bit_and(Columns::multiply_low(four, Columns::integers(0x00204081u)),
                         Columns::integers(0x01010101u));
    out[kRegister] = Columns::bit_or(out[kRegister], Columns::template shift_left<4>(spread));
    if constexpr (kRegister < 7) add_fifth_bits<kRegister + 1>(high, out);
  }
};

// x = d * (code - 16), exact.
template <class Isa>
struct Q5_0 : FiveBits<PairsOfBlocks<Isa, Q5_0<Isa>, BlockQ5_0>> {
  static constexpr int32_t kFormat = number_of(Format::q5_0);
  static constexpr uint32_t kOffset = 16;

  static float weight(const BlockQ5_0& block, uint32_t i) {
    const int32_t code = static_cast<int32_t>(code5(block.nibbles, block.high, i)) - 16;
    return Isa::half_to_float(block.d) * static_cast<float>(code);
  }
};

// x = d * code + m: one rounding.
template <class Isa>
struct Q5_1 : FiveBits<BlocksWithMinimum<Isa, Q5_1<Isa>, BlockQ5_1>> {
  static constexpr int32_t kFormat = number_of(Format::q5_1);

  static float weight(const BlockQ5_1& block, uint32_t i) {
    const float code = static_cast<float>(code5(block.nibbles, block.high, i));
    return Isa::half_to_float(block.d) * code + Isa::half_to_float(block.m);
  }
};

// x = d * code, exact.
template <class Isa>
struct Q8_0 : PairsOfBlocks<Isa, Q8_0<Isa>, BlockQ8_0> {
  using Base = PairsOfBlocks<Isa, Q8_0<Isa>, BlockQ8_0>;
  using Ints = typename Base::Ints;
  static constexpr int32_t kFormat = number_of(Format::q8_0);
  static constexpr bool kSigned = true;
  static constexpr uint32_t kRotation = Base::template rotation<32>();

  static float weight(const BlockQ8_0& block, uint32_t i) {
    return Isa::half_to_float(block.d) * static_cast<float>(block.codes[i]);
  }

  static void to_codes(const Ints* words, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 8; ++j) out[j] = words[j];
  }
};

}  // namespace akunu::cpu
