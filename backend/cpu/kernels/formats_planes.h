// MLX's affine groups as panels of codes (panel.h): codes, scales and biases lie in planes of their own.
//
// 1. What it computes. 32 codes of every column out of as many words as a code has bits; and scales
//    and biases as float32, eight of each at a time.
// 2. What bounds it. For one row the products, two for each byte of codes (row_tile_two_byte.h), and
//    transposing. Codes of 3, 5 and 6 bits take six to eight instructions for four of them.
// 3. What is done about it. Codes whose bits divide a byte stay in the order of one shift and one
//    mask for a register; the input is brought into that order instead (kCodesTogether). What reads
//    scales is a function of its own, so that group sizes and types of scale are data: kernels are
//    compiled once for each number of bits.
// 4. Where to change it. Another way to make codes of words: `to_codes`.
#pragma once

#include "core/kinds.h"
#include "cpu/kernels/formats_blocks.h"
#include "cpu/kernels/formats_table.h"
#include "cpu/kernels/panel_groups.h"

namespace akunu::cpu {

// What a plane of scales has: floats of a kind, or bytes that are exponents (mxfp4, where biases
// follow from scales).
enum class PlaneNumber : uint8_t { f16, bf16, f32, exponent };
constexpr uint32_t bytes_of(PlaneNumber number) {
  return number == PlaneNumber::f32 ? 4 : number == PlaneNumber::exponent ? 1 : 2;
}
// Weights that share a scale, and what it is.
struct PlanesFormat {
  uint32_t group;
  PlaneNumber number;
};
constexpr PlanesFormat planes_format(const MlxFormat& format) {
  return {format.group, format.scale == MlxScale::f16    ? PlaneNumber::f16
                        : format.scale == MlxScale::bf16 ? PlaneNumber::bf16
                                                         : PlaneNumber::f32};
}

// A panel of codes, and where its scales and biases are.
struct PlanesPanel : Panel {
  const std::byte *scales, *biases;  // of the panel's first row
  uint64_t number_stride;            // bytes from row to row of both
  uint64_t n_rows;                   // from that row on: the planes end behind them
  PlanesFormat format;
};
static inline PlanesPanel panel_from(const PlanesPanel& panel, uint64_t rows) {
  PlanesPanel from = panel;
  from.first += rows * panel.stride;
  from.scales += rows * panel.number_stride;
  from.biases += rows * panel.number_stride;
  from.n_rows -= rows;
  return from;
}

// `kBytes` bytes of every column of a panel, where reading more than belongs to a row may be reading
// more than there is: then a copy, filled up with zeros.
template <class Columns, uint32_t kBytes>
struct PaddedRows {
  std::byte copy[Columns::kCount * kBytes];

  // The n bytes from `first` on, and what is `stride` bytes behind them, are of `panel`'s last rows.
  [[gnu::noinline]] Panel of(const Panel& panel, uint64_t n) {
    for (uint32_t c = 0; c < Columns::kCount; ++c) {
      __builtin_memset(copy + c * kBytes, 0, kBytes);
      __builtin_memcpy(copy + c * kBytes, panel.first + c * panel.stride, n < kBytes ? n : kBytes);
    }
    return {copy, kBytes};
  }
};

// Whether reading so many bytes of every column of a panel, from byte `begin` of its rows on, goes
// behind the end of the plane.
template <class Columns>
static inline bool reads_too_far(uint64_t n_rows, uint64_t stride, uint64_t begin, uint64_t bytes) {
  return (Columns::kCount - 1) * stride + begin + bytes > n_rows * stride;
}

// Eight scales, or biases, of every column.
template <class Columns>
struct PlaneNumbers {
  using Floats = typename Columns::Floats;
  using Ints = typename Columns::Ints;
  static constexpr uint32_t kCount = 8;

  Floats scales[kCount], biases[kCount];

  // Those of the panel's groups from number `group` on. Behind the last one of a row they are anything.
  [[gnu::noinline]] void read(const PlanesPanel& panel, uint64_t group) {
    switch (panel.format.number) {
      case PlaneNumber::f16:
        return read_both<PlaneNumber::f16>(panel, group);
      case PlaneNumber::bf16:
        return read_both<PlaneNumber::bf16>(panel, group);
      case PlaneNumber::f32:
        return read_both<PlaneNumber::f32>(panel, group);
      case PlaneNumber::exponent:
        read_plane<PlaneNumber::exponent>(panel, panel.scales, group, scales);
        for (uint32_t i = 0; i < kCount; ++i)
          biases[i] = Columns::multiply(scales[i], Columns::broadcast(-float{kFp4Offset}));
    }
  }

 private:
  template <PlaneNumber kNumber>
  void read_both(const PlanesPanel& panel, uint64_t group) {
    read_plane<kNumber>(panel, panel.scales, group, scales);
    read_plane<kNumber>(panel, panel.biases, group, biases);
  }
  template <PlaneNumber kNumber>
  static void read_plane(const PlanesPanel& panel, const std::byte* plane, uint64_t group,
                         Floats (&out)[kCount]) {
    constexpr uint32_t kWords = kCount * bytes_of(kNumber) / 4, kRead = kWords < 4 ? 4 : kWords;
    const uint64_t begin = group * bytes_of(kNumber), stride = panel.number_stride;
    Panel rows{plane + begin, stride};
    prefetch_lines<kIntoL2>(plane + Columns::kCount * (stride + begin),
                            Columns::kCount * 4 * kWords);
    PaddedRows<Columns, 4 * kRead> padded;
    if (reads_too_far<Columns>(panel.n_rows, stride, begin, 4 * kRead))
      rows = padded.of(rows, stride - begin);
    Ints words[kRead];
    for (uint32_t i = 0; i < kRead; i += 4)
      Columns::transpose(rows.first + 4 * i, rows.stride, *reinterpret_cast<Ints(*)[4]>(words + i),
                         [](uint32_t, const auto&) {});
    put_floats<kNumber, 0>(words, out);
  }
  template <PlaneNumber kNumber, uint32_t kIndex>
  static void put_floats(const Ints* words, Floats (&out)[kCount]) {
    constexpr uint32_t kOfWord = 4 / bytes_of(kNumber), kAt = kIndex % kOfWord;
    const Ints word = words[kIndex / kOfWord];
    if constexpr (kNumber == PlaneNumber::f32)
      out[kIndex] = Columns::as_floats(word);
    else if constexpr (kNumber == PlaneNumber::bf16)
      out[kIndex] =
          Columns::as_floats(kAt == 0 ? Columns::template shift_left<16>(word)
                                      : Columns::bit_and(word, Columns::integers(0xffff0000u)));
    else if constexpr (kNumber == PlaneNumber::f16)
      out[kIndex] = Columns::low_halves(Columns::template shift_right<16 * kAt>(word));
    else
      out[kIndex] = power_of_two(
          Columns::bit_and(Columns::template shift_right<8 * kAt>(word), Columns::integers(255)));
    if constexpr (kIndex + 1 < kCount) put_floats<kNumber, kIndex + 1>(words, out);
  }
  // 2^(exponent - 128), half of what it stands for: codes of mxfp4 are twice the numbers. 255 is NaN.
  static Floats power_of_two(Ints exponent) {
    const Ints half = Columns::template shift_right<1>(exponent);
    const Ints rest = Columns::subtract(exponent, half);
    const Floats exact = Columns::multiply(power(half), power(rest));
    const Ints is_last =
        Columns::template shift_right<8>(Columns::add(exponent, Columns::integers(1)));
    const Ints no_number = Columns::bit_and(Columns::subtract(Columns::integers(0), is_last),
                                            Columns::integers(0x7fc00000u));
    return Columns::multiply_add(exact, Columns::broadcast(1.0f), Columns::as_floats(no_number));
  }
  // 2^(exponent - 64)
  static Floats power(Ints exponent) {
    return Columns::as_floats(
        Columns::template shift_left<23>(Columns::add(exponent, Columns::integers(127 - 64))));
  }
};

template <uint32_t kBits>
struct MlxWords {
  uint16_t halves[2 * kBits];
};

// What codes of planes have in common; `Trait::kBits` of them.
template <class Isa, class Trait, uint32_t kBits_>
struct PlaneCodes : Blocks<Isa, Trait, MlxWords<kBits_>, 32> {
  using Base = Blocks<Isa, Trait, MlxWords<kBits_>, 32>;
  using Input = TwoByteInput<Isa>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;

  static constexpr uint32_t kBits = kBits_;
  static constexpr bool kHasMinimum = true;
  static constexpr bool kDividesByte = 8 % kBits == 0;
  static constexpr uint32_t kCodesTogether = kDividesByte ? 8 / kBits : 1;

  // The codes of a group of 32.
  static void codes(const auto& panel, uint32_t group, Ints (&out)[8]) {
    Ints words[kBits < 4 ? 4 : kBits];
    if constexpr (kBits >= 4) {
      Base::template load_words<kBits>(panel, group, 0, words);
    } else {
      const uint64_t begin = uint64_t{group} * sizeof(MlxWords<kBits>);
      if (reads_too_far<Columns>(panel.n_rows, panel.stride, begin, 16)) {
        PaddedRows<Columns, 16> padded;
        const Panel rows = padded.of({panel.first + begin, panel.stride}, panel.stride - begin);
        Columns::transpose(rows.first, rows.stride, words, [](uint32_t, const auto&) {});
      } else {
        Base::template load_words<4>(panel, group, 0, words);
      }
    }
    to_codes<0>(words, out);
    for (Ints& each : out) each = Trait::code(each);
  }

 private:
  static constexpr uint32_t kMask = (1u << kBits) - 1;

  template <uint32_t kRegister>
  static void to_codes(const Ints* words, Ints (&out)[8]) {
    if constexpr (kDividesByte) {
      constexpr uint32_t kOfWord = kRegister % kCodesTogether;
      const Ints word = words[kRegister / kCodesTogether];
      out[kRegister] = kBits == 8 ? word : Base::template fields<kOfWord * kBits, kBits>(word);
    } else {
      constexpr uint32_t kFour = 4 * kBits, kBegin = kFour * kRegister, kShift = kBegin % 32;
      Ints four = Columns::template shift_right<kShift>(words[kBegin / 32]);
      if constexpr (kShift + kFour > 32)
        four = Columns::bit_or(four,
                               Columns::template shift_left<32 - kShift>(words[kBegin / 32 + 1]));
      out[kRegister] = spread(four);
    }
    if constexpr (kRegister < 7) to_codes<kRegister + 1>(words, out);
  }
  // Four neighbouring codes to four bytes: two to each half, then one to each byte.
  static Ints spread(Ints four) {
    constexpr uint32_t kTwo = (1u << 2 * kBits) - 1;
    const Ints two = Columns::and_or(Columns::template shift_left<16 - 2 * kBits>(four),
                                     Columns::integers(kTwo << 16),
                                     Columns::bit_and(four, Columns::integers(kTwo)));
    return Columns::and_or(Columns::template shift_left<8 - kBits>(two),
                           Columns::integers(kMask * 0x01000100u),
                           Columns::bit_and(two, Columns::integers(kMask * 0x00010001u)));
  }
};

// Affine: weight = scale * code + bias.
template <class Isa, uint32_t kBits>
struct MlxCodes : PlaneCodes<Isa, MlxCodes<Isa, kBits>, kBits> {
  using Base = PlaneCodes<Isa, MlxCodes<Isa, kBits>, kBits>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;

  static constexpr int32_t kFormat = number_of(Format::mlx_first);  // of the family
  // Codes are 128 less than they are stored: for products of signed codes.
  static constexpr bool kIsShifted = kBits == 8 && Columns::Policy::kSignedProducts;
  static constexpr uint32_t kLargestCode = kIsShifted ? 127 : (1u << kBits) - 1;

  static Ints code(Ints stored) {
    return kIsShifted ? Columns::bit_xor(stored, Base::every_byte(0x80)) : stored;
  }
};

// mxfp4: codes are places in a table, whose numbers are twice the floats and 12 more: the bias is
// -12 scales.
template <class Isa>
struct Mxfp4Codes : PlaneCodes<Isa, Mxfp4Codes<Isa>, 4> {
  using Base = PlaneCodes<Isa, Mxfp4Codes<Isa>, 4>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;

  static constexpr int32_t kFormat = number_of(Format::mlx_mxfp4);
  static constexpr bool kIsShifted = false;
  static constexpr uint32_t kLargestCode = 24;

  static Ints code(Ints stored) { return Columns::look_up(stored, kFp4Codes); }
};

// Decoding such a panel: as PanelGroups of blocks, with scales and biases in between.
template <class Isa, class Format>
  requires(std::is_same_v<typename Format::Input, TwoByteInput<Isa>>)
struct PanelGroups<Isa, Format> {
  using Columns = typename Isa::Columns;
  using Group = GroupFor<typename RowTilesFor<Isa, Format>::Direct, Format>;
  using OfGroup = SuperBlock<Columns, Format, 1>;  // of blocks: nothing here

  // Calls use(group, g, of_group) for every group of 32 in order.
  template <uint32_t kFewRows = 0>
  static inline void for_each_group(const auto& panel, uint32_t k, const auto& use, const auto&) {
    using Numbers = PlaneNumbers<Columns>;
    const uint32_t parts = panel.format.group / 32, n_groups = k / 32;
    Numbers numbers;
    const auto of_codes = panel;  // a copy that no call sees, and that stays in registers
    for (uint32_t g = 0, number = 0; g < n_groups; ++number) {
      if (number % Numbers::kCount == 0) numbers.read(panel, number);
      Group group;
      group.scale[0] = numbers.scales[number % Numbers::kCount];
      group.minimum = numbers.biases[number % Numbers::kCount];
      for (uint32_t part = 0; part < parts; ++part, ++g) {
        Format::codes(of_codes, g, group.codes);
        use(group, g, OfGroup{});
      }
    }
  }
};

}  // namespace akunu::cpu
