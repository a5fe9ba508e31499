// The int16 path of weights in 16-bit floats: a panel rounds them to q16_32 when it is packed,
// column by column, as the input is.
//
// 1. What it computes. Of 32 weights of every column: the exponent of the largest, a power of two
//    as scale, codes of 14 bits.
// 2. What bounds it. Packing is for 256 rows of a prompt; then the multipliers.
// 3. What is done about it. The largest is found within lanes. A float becomes its code by adding
//    1.5 * 2^23 scales, whose last bit is worth one of them.
// 4. What was tried and did not pay. Rounding by instructions (packing a third slower); halves
//    shifted into a float's exponent (a seventh faster, but subnormal halves cost some processors a
//    hundred cycles each). docs/decisions/prompts-on-the-cpu.md.
#pragma once

#include "cpu/kernels/formats_blocks.h"
#include "cpu/kernels/quantize16.h"

namespace akunu::cpu {

// Two neighbours of every column, in 16 bits each, as floats.
template <class Columns, int32_t kFormat>
struct PairOf;
template <class Columns>
struct PairOf<Columns, number_of(Format::f16)> {
  static void floats(typename Columns::Ints pairs, typename Columns::Floats (&out)[2]) {
    Columns::both_halves(pairs, out);
  }
  static auto lower(typename Columns::Ints pairs) { return Columns::low_halves(pairs); }
};
template <class Columns>
struct PairOf<Columns, number_of(Format::bf16)> {
  static void floats(typename Columns::Ints pairs, typename Columns::Floats (&out)[2]) {
    out[0] = lower(pairs);
    out[1] = Columns::as_floats(Columns::bit_and(pairs, Columns::integers(0xffff0000u)));
  }
  static auto lower(typename Columns::Ints pairs) {
    return Columns::as_floats(Columns::template shift_left<16>(pairs));
  }
};

// How the 32 numbers in every lane are rounded to codes: adding `whole`, whose last mantissa bit is
// worth one code, leaves the codes in the low bits.
template <class Columns>
struct Rounding16 {
  using Floats = typename Columns::Floats;
  using Ints = typename Columns::Ints;

  Floats whole, scale;

  // From the exponent of the largest magnitude; other bits are ignored. From 2^116 on `whole` is
  // infinite, and so are the codes; the scale is then NaN, so that it shows in the results.
  static Rounding16 of(Ints largest) {
    const Ints exponent = Columns::bit_and(largest, Columns::integers(0x7f800000u));
    const Floats power = Columns::maximum(Columns::as_floats(exponent),
                                          Columns::broadcast(power_of_two(kSmallestExponent16)));
    const Floats whole =
        Columns::multiply(power, Columns::broadcast(1.5f * power_of_two(kBias + 23 - kCodeBits16)));
    return {whole,
            Columns::multiply_add(power, Columns::broadcast(power_of_two(kBias - kCodeBits16)),
                                  Columns::multiply(whole, Columns::zero()))};
  }
  // The code is in the low 16 bits; the others are undefined.
  static Ints code(Floats number, Floats whole) {
    return Columns::as_integers(Columns::add(number, whole));
  }
  static Ints pairs(Ints first, Ints second) {
    return Columns::and_or(first, Columns::integers(0xffffu),
                           Columns::template shift_left<16>(second));
  }
};

struct Block16 {
  uint16_t bits[32];
};

template <class Isa, class Floats16>
struct Int16Weights : Blocks<Isa, Int16Weights<Isa, Floats16>, Block16, 32> {
  using Base = Blocks<Isa, Int16Weights<Isa, Floats16>, Block16, 32>;
  using Input = Quant16Input<Isa>;
  using Columns = typename Base::Columns;
  using Floats = typename Base::Floats;
  using Ints = typename Base::Ints;
  using Pair = PairOf<Columns, Floats16::kFormat>;

  static constexpr int32_t kFormat = Floats16::kFormat;
  static constexpr uint32_t kLargestCode = 1u << (kCodeBits16 + 1);

  static uint64_t row_bytes(uint32_t k) { return Floats16::row_bytes(k); }

  struct Group {
    Ints codes[16];  // register j: weights 2 j and 2 j + 1
    Floats scale;
  };
  static Group open(const auto& panel, uint32_t group) {
    Ints pairs[16];
    load_pairs(panel, group, pairs);
    return rounded(pairs);
  }
  template <uint32_t>
  static void codes(const Group& group, const auto&, Ints (&out)[16]) {
    for (uint32_t j = 0; j < 16; ++j) out[j] = group.codes[j];
  }
  template <uint32_t>
  static void scale(const Group& group, auto& out) {
    out.scale[0] = group.scale;
  }

 private:
  // The last group of a row may be shorter, and the file may end behind it: it is copied and padded
  // with zeros.
  static void load_pairs(const auto& panel, uint32_t group, Ints (&pairs)[16]) {
    const uint64_t begin = uint64_t{group} * sizeof(Block16), left = panel.stride - begin;
    if (left >= sizeof(Block16)) return Base::template load_words<16>(panel, group, 0, pairs);
    Block16 blocks[Columns::kCount] = {};
    for (uint32_t c = 0; c < Columns::kCount; ++c)
      __builtin_memcpy(blocks + c, panel.first + c * panel.stride + begin, left);
    const Panel copy{reinterpret_cast<const std::byte*>(blocks), sizeof(Block16)};
    Base::template load_words<16>(copy, 0, 0, pairs);
  }

  static Group rounded(const Ints (&pairs)[16]) {
    const Ints magnitude = Columns::integers(0x7fff7fffu);
    Ints most = Columns::bit_and(pairs[0], magnitude);
    for (uint32_t j = 1; j < 16; ++j)
      most = Columns::larger_of_pairs(most, Columns::bit_and(pairs[j], magnitude));
    most = Columns::larger_of_pairs(most, Columns::template shift_right<16>(most));
    using Rounding = Rounding16<Columns>;
    const auto rounding = Rounding::of(Columns::as_integers(Pair::lower(most)));
    Group out;
    out.scale = rounding.scale;
    for (uint32_t j = 0; j < 16; ++j) {
      Floats weights[2];
      Pair::floats(pairs[j], weights);
      out.codes[j] = Rounding::pairs(Rounding::code(weights[0], rounding.whole),
                                     Rounding::code(weights[1], rounding.whole));
    }
    return out;
  }
};

}  // namespace akunu::cpu
