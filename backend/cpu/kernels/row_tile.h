// The words in which rows of an input are multiplied with a panel of columns (panel.h): one by one, or
// several at once where a level has instructions for that.
//
// Those of one row are the level's Columns, and what DirectRowTile says here, with what the row brings to every
// panel computed once; those of one among many PackedRowTile, or MultiPanelRowTile where a level has few registers.
// Codes of 16 bits, which a level multiplies in pairs, have Int16RowTile.
// Words for several are a type of the level, Isa::ManyRowTile, with the same names (isa/i8mm.h has them):
//
//   Registers               which has Ints and Floats
//   kRows                   rows whose sums lie in a Floats; an Ints of codes has 4 * kRows of a column
//   kPanels                 panels whose sums lie in a Floats
//   kCodes<Format>          registers of a group's codes
//   kScaleForm<Format>      how a group has its scales
//   kTileRows               rows of a tile
//   in_turn(n)              how many of n rows (in the words' sense) take turns at a group's products
//   dot<kLargest, kRegisters>(sums, codes, x)
//                           sums[i] += codes . the i-th of them, whose own codes are at x[i]; dot_signed too
//   arrange<Format>(group, panel, out)
//                           a group of one of the panels, from how it was unpacked
//   pack_minima<Format>(of_group, panel, i, super_block)
//                           the minima of a super-block's i-th group, likewise
//   pack_factor(of_group, panel, super_block)
//                           what its groups share
//   pack_rows<Format>(groups, out)
//                           a group of kRows rows of the input, kGroupBytes<Format> bytes
//   group<Format>(row, k, g)
//                           where that lies, in rows so arranged
//   start<Format, kFirst, kCount>(group)
//                           what the products of eighths [kFirst, kFirst + kCount) are added to: less
//                           what the offset of their codes makes of them
//                           (where scales are pairs, as two int16)
//   row_scales(scale)       the input's scale, for every lane of a Floats
//   sum<Format>(group, i)   the sum of codes that the group's i-th minimum meets, likewise; in
//                           super-blocks times that scale
//   rows(sums)              an array of sums as an array of those of single rows
//   of_panel(sums, panel)   of one of those what Columns has
//
// What is done with a lane is the same, in the same order, so no bit depends on the words.
#pragma once

#include "cpu/isa/dot_interleaved.h"
#include "cpu/kernels/formats.h"

namespace akunu::cpu {

// Rows of an input, `stride` bytes apart; several are one where they are multiplied at once. A tile
// with more than there are repeats the last one.
struct InputRows {
  const std::byte* first;
  uint64_t stride;
  uint32_t k, n;
  const std::byte* prepared = nullptr;  // what DirectRowTile::prepare makes of them
  uint64_t prepared_stride = 0;
};
// One of them, and where one of its groups has what.
struct InputRow {
  const std::byte *codes, *prepared;
};
struct InputGroup {
  const int8_t* codes;
  const float* scale;
  const int16_t* half_sums;
  const std::byte* prepared;
  const std::byte* rotated = nullptr;
};

// Where a group has its codes, four at a time, for weights that begin in the middle of a word: of every kRotation, the last
// two come first. Asked as a pointer would be.
template <uint32_t kRotation>
struct RotatedCodes {
  const int8_t* codes;
  const std::byte* first;  // four of each kRotation

  const int8_t* operator+(uint32_t code) const {
    if (code % kRotation != 0) return codes + code - 2;
    return reinterpret_cast<const int8_t*>(first) + 4 * (code / kRotation);
  }
};

// Scales of a super-block's groups are whole numbers, and the products with them exact in each of these:
// floats, which dot products meet that have become floats; pairs of equal int16, which meet the sums of
// two lots of products when those are added; or the codes of a group have been multiplied with them.
enum class ScaleForm { floats, pairs, in_codes };

// Of a super-block's codes, less their offset, and its scales.
struct ProductRange {
  int32_t lowest, highest;
};
template <class Format>
static constexpr ProductRange product_range() {
  constexpr int32_t kOffset = static_cast<int32_t>(Format::kOffset);
  const int32_t codes[] = {-kOffset, static_cast<int32_t>(Format::kLargestCode) - kOffset};
  const int32_t scales[] = {Format::kLowestScale, Format::kHighestScale};
  ProductRange range{0, 0};
  for (const int32_t code : codes)
    for (const int32_t scale : scales) {
      range.lowest = code * scale < range.lowest ? code * scale : range.lowest;
      range.highest = code * scale > range.highest ? code * scale : range.highest;
    }
  return range;
}

template <class Registers, ScaleForm kAre, uint32_t kCount>
struct GroupScales {
  typename Registers::Floats scale[kCount];
};
template <class Registers, uint32_t kCount>
struct GroupScales<Registers, ScaleForm::pairs, kCount> {
  typename Registers::Ints scale[kCount];
};
template <class Registers, uint32_t kCount>
struct GroupScales<Registers, ScaleForm::in_codes, kCount> {};

template <class Registers, bool kPresent>
struct GroupMinimum {
  typename Registers::Floats minimum;
};
template <class Registers>
struct GroupMinimum<Registers, false> {};

// A group of every column, ready to be multiplied.
template <class Registers, uint32_t kCodes, ScaleForm kAre, class Format>
struct ColumnGroup : GroupScales<Registers, kAre, Format::kDots>,
                     GroupMinimum<Registers, Format::kHasMinimum && !Format::kSuperBlock> {
  typename Registers::Ints codes[kCodes];
};
template <class RowTile, class Format>
using GroupFor = ColumnGroup<typename RowTile::Registers, RowTile::template kCodes<Format>,
                             RowTile::template kScaleForm<Format>, Format>;

template <class Registers, uint32_t kCount>
struct SuperBlockMinima {
  typename Registers::Floats minima[kCount];
};
template <class Registers>
struct SuperBlockMinima<Registers, 0> {};

// The factor that the groups of a super-block share, and the minima of kOf of them.
template <class Registers, class Format, uint32_t kOf>
struct SuperBlock : SuperBlockMinima<Registers, Format::kHasMinimum ? kOf * Format::kDots : 0> {
  typename Registers::Floats factor;
};

template <class Number>
static inline void store_number(std::byte* p, Number number) {
  __builtin_memcpy(p, &number, sizeof(number));
}

template <class Columns>
struct DirectRowTile : Columns {
  using typename Columns::Floats;
  using typename Columns::Ints;
  using Registers = Columns;
  static constexpr uint32_t kRows = 1, kPanels = 1;
  static constexpr uint32_t interleaved_rows(uint32_t n) {
    return n % Columns::kInterleaved == 0 ? Columns::kInterleaved : 1;
  }
  template <class>
  static constexpr uint32_t kCodes = 8;
  template <class>
  static constexpr ScaleForm kScaleForm = ScaleForm::floats;
  template <class Format>
  static constexpr uint32_t kOffset = Format::kSigned ? Columns::kSignedOffset : Format::kOffset;

  template <class Format>
  static void pack_group(const auto& group, uint32_t, auto& out) {
    out = group;
  }
  template <class Format>
  static void pack_minima(const auto& of_group, uint32_t, uint32_t index, auto& out) {
    for (uint32_t i = 0; i < Format::kDots; ++i)
      out.minima[Format::kDots * index + i] = of_group.minima[i];
  }
  static void pack_factor(const auto& of_group, uint32_t, auto& out) {
    out.factor = of_group.factor;
  }

  // What is prepared of a row's groups: the starts of its dot products, and the sums that minima meet.
  template <class Format>
  static constexpr uint32_t kStarts = kOffset<Format> == 0 ? 0 : Format::kDots;
  template <class Format>
  static constexpr uint32_t kSums = Format::kHasMinimum ? Format::kDots : 0;
  template <class Format>
  static constexpr uint32_t kRotatedParts = Format::kRotation == 0 ? 0 : 32 / Format::kRotation;
  template <class Format>
  static constexpr uint64_t kGroupBytes = 4 * (kStarts<Format> + kSums<Format>);
  template <class Format>
  static void prepare(const InputGroup& first, uint32_t n_groups, std::byte* out) {
    prepare_starts<kOffset<Format>, kStarts<Format>>(first, n_groups, out, kGroupBytes<Format>);
    prepare_sums<Format>(first, n_groups, out + 4 * kStarts<Format>, kGroupBytes<Format>);
  }
  template <class Format>
  static float sum_of(const float* scale, const int16_t* half_sums, uint32_t i) {
    const int32_t sum = Format::kDots == 2 ? half_sums[i] : half_sums[0] + half_sums[1];
    return Format::kSuperBlock ? *scale * static_cast<float>(sum) : static_cast<float>(sum);
  }

  // A group as the row has it, and with what is prepared of it.
  static InputGroup of_row(const std::byte* row, uint32_t k, uint32_t g) {
    return {reinterpret_cast<const int8_t*>(row) + uint64_t{32} * g,
            reinterpret_cast<const float*>(row + k) + g,
            reinterpret_cast<const int16_t*>(row + k + uint64_t{4} * (k / 32)) + 2 * g, nullptr};
  }
  template <class Format>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    InputGroup group = of_row(row.codes, k, g);
    group.prepared = row.prepared + g * kGroupBytes<Format>;
    group.rotated =
        row.prepared + k / 32 * kGroupBytes<Format> + 4 * kRotatedParts<Format> * (g / 2);
    return group;
  }
  // Of a single row, behind what is prepared of all groups: the first four codes of those that are turned.
  template <class Format>
  static constexpr uint64_t rotated_bytes(uint32_t n_groups) {
    return uint64_t{n_groups + 1} / 2 * 4 * kRotatedParts<Format>;
  }
  template <class Format>
  static void prepare_rotated(const int8_t* codes, uint32_t n_groups, std::byte* out) {
    out += n_groups * kGroupBytes<Format>;
    for (uint32_t g = 0; g < n_groups; g += 2, codes += 64)
      for (uint32_t i = 0; i < 32; i += Format::kRotation, out += 4) {
        __builtin_memcpy(out, codes + i + Format::kRotation - 2, 2);
        __builtin_memcpy(out + 2, codes + i, 2);
      }
  }
  template <class Format>
  static auto rotated(const InputGroup& group) {
    return RotatedCodes<Format::kRotation>{group.codes, group.rotated};
  }

  template <class Format, uint32_t kFirst, uint32_t>
  static Ints start(const InputGroup& group) {
    return start_at<kStarts<Format>, kFirst>(group);
  }
  static Floats row_scales(const float* scale) { return Columns::broadcast(*scale); }
  template <class Format>
  static Floats sum(const InputGroup& group, uint32_t i) {
    return sum_at(group, kStarts<Format> + i);
  }
  static const auto& rows(const auto& sums) { return sums; }
  static Floats of_panel(Floats sums, uint32_t) { return sums; }

 protected:
  template <uint32_t kStarts_, uint32_t kFirst>
  static Ints start_at(const InputGroup& group) {
    if constexpr (kStarts_ == 0) return Columns::integers(0);
    return Columns::integers(load_unaligned<uint32_t>(group.prepared + (kFirst == 0 ? 0 : 4)));
  }
  static Floats sum_at(const InputGroup& group, uint32_t i) {
    return Columns::broadcast(load_unaligned<float>(group.prepared + 4 * i));
  }

  template <uint32_t kOffset_, uint32_t kStarts_>
  static void prepare_starts(const InputGroup& first, uint32_t n_groups, std::byte* out,
                             uint64_t stride) {
    constexpr int32_t kFactor = -static_cast<int32_t>(kOffset_);
    if constexpr (kStarts_ != 0)
      for (uint32_t g = 0; g < n_groups; ++g, out += stride) {
        const int32_t low = first.half_sums[2 * g], high = first.half_sums[2 * g + 1];
        store_number(out, kFactor * (kStarts_ == 1 ? low + high : low));
        if constexpr (kStarts_ == 2) store_number(out + 4, kFactor * high);
      }
  }
  template <class Format>
  static void prepare_sums(const InputGroup& first, uint32_t n_groups, std::byte* out,
                           uint64_t stride) {
    for (uint32_t g = 0; g < n_groups; ++g, out += stride)
      for (uint32_t i = 0; i < kSums<Format>; ++i)
        store_number(out + 4 * i, sum_of<Format>(first.scale + g, first.half_sums + 2 * g, i));
  }
};

// sums[i] += the products of int16 codes in pairs with those at x[i]; sums of one panel, or of several.
template <class Columns, uint32_t kRegisters, class Registers, uint32_t N>
static inline void dot_int16(Registers (&sums)[N], const Registers* codes,
                             const int8_t* const (&x)[N]) {
  using Ints = typename Columns::Ints;
  dot_interleaved<Columns, kRegisters>(sums, codes, x, [](Ints sum, Ints some, Ints two) {
    return Columns::add_pairs(sum, some, two);
  });
}

// One row among many, for which panels are unpacked into what the level multiplies fastest: scales that are
// pairs (Columns::kSumsInPairs), or in the codes where products fit a byte that it takes for a code
// (kWholeBytes). Signed codes become int16 where those of one byte cost more (kSignedPairs).
template <class Columns>
struct PackedRowTile : DirectRowTile<Columns> {
  using Direct = DirectRowTile<Columns>;
  using typename Columns::Floats;
  using typename Columns::Ints;

  static constexpr bool kHasPairs = requires { Columns::kSignedPairs; };
  template <class Format>
  static constexpr bool kPairs = Format::kSigned && kHasPairs;

  template <class Format>
  static constexpr ScaleForm scale_form() {
    if constexpr (Format::kSuperBlock) {
      if constexpr (requires { Columns::kSumsInPairs; }) return ScaleForm::pairs;
      constexpr ProductRange kRange = product_range<Format>();
      if constexpr (requires { Columns::kWholeBytes; } && kRange.highest - kRange.lowest <= 255)
        return ScaleForm::in_codes;
    }
    return ScaleForm::floats;
  }
  template <class Format>
  static constexpr ScaleForm kScaleForm = scale_form<Format>();

  template <class Format>
  static constexpr uint32_t start_offset() {
    if constexpr (kScaleForm<Format> == ScaleForm::in_codes)
      return static_cast<uint32_t>(-product_range<Format>().lowest);
    return Direct::template kOffset<Format>;
  }
  template <class Format>
  static constexpr uint32_t kStartOffset = start_offset<Format>();
  template <class Format>
  static constexpr uint32_t kStarts = kStartOffset<Format> == 0                   ? 0
                                      : kScaleForm<Format> == ScaleForm::in_codes ? 1
                                                                                  : Format::kDots;
  template <class Format>
  static constexpr uint32_t kCodes = kPairs<Format> ? 16 : 8;
  template <class Format>
  static constexpr uint64_t kGroupBytes =
      kPairs<Format> ? 64 : 4 * (kStarts<Format> + Direct::template kSums<Format>);

  template <class Format>
  static void pack_group(const auto& group, uint32_t panel, auto& out) {
    if constexpr (kPairs<Format>) {
      for (uint32_t j = 0; j < 8; ++j)
        Columns::widen(group.codes[j], out.codes[j], out.codes[8 + j]);
      out.scale[0] = group.scale[0];
    } else if constexpr (kScaleForm<Format> == ScaleForm::pairs) {
      for (uint32_t j = 0; j < 8; ++j) out.codes[j] = group.codes[j];
      for (uint32_t i = 0; i < Format::kDots; ++i) out.scale[i] = Columns::pairs_of(group.scale[i]);
    } else if constexpr (kScaleForm<Format> == ScaleForm::in_codes) {
      constexpr uint32_t kOfScale = 8 / Format::kDots;
      for (uint32_t j = 0; j < 8; ++j)
        out.codes[j] = products_of_bytes<Format::kOffset, kStartOffset<Format>>(
            group.codes[j], Columns::to_integer(group.scale[j / kOfScale]));
    } else {
      Direct::template pack_group<Format>(group, panel, out);
    }
  }
  template <class Format>
  static void prepare(const InputGroup& first, uint32_t n_groups, std::byte* out) {
    if constexpr (kPairs<Format>) {
      static_assert(kStarts<Format> == 0 && Direct::template kSums<Format> == 0);
      for (uint32_t g = 0; g < n_groups; ++g, out += kGroupBytes<Format>)
        Columns::widen_codes(first.codes + uint64_t{32} * g, out);
    } else {
      constexpr uint64_t kStride = kGroupBytes<Format>;
      if constexpr (kStarts<Format> != 0 && kScaleForm<Format> == ScaleForm::pairs)
        prepare_pairs_of_starts<kStartOffset<Format>>(first, n_groups, out, kStride);
      else
        Direct::template prepare_starts<kStartOffset<Format>, kStarts<Format>>(first, n_groups, out,
                                                                               kStride);
      Direct::template prepare_sums<Format>(first, n_groups, out + 4 * kStarts<Format>, kStride);
    }
  }

  template <class Format>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    InputGroup group = Direct::of_row(row.codes, k, g);
    group.prepared = row.prepared + g * kGroupBytes<Format>;
    if constexpr (kPairs<Format>) group.codes = reinterpret_cast<const int8_t*>(group.prepared);
    return group;
  }
  template <class Format, uint32_t kFirst, uint32_t>
  static Ints start(const InputGroup& group) {
    return Direct::template start_at<kStarts<Format>, kFirst>(group);
  }
  template <class Format>
  static Floats sum(const InputGroup& group, uint32_t i) {
    return Direct::sum_at(group, kStarts<Format> + i);
  }
  template <uint32_t kRegisters>
  static void dot_signed(auto& sums, const auto* codes, const auto& x) {
    if constexpr (kHasPairs)
      dot_int16<Columns, kRegisters>(sums, codes, x);
    else
      Columns::template dot_signed<kRegisters>(sums, codes, x);
  }

 private:
  // (code - kOffset) * scale + kMore of each of four codes: as digits of one number they are multiplied at
  // once, since every result is a digit too.
  template <uint32_t kOffset, uint32_t kMore>
  static Ints products_of_bytes(Ints codes, Ints scale) {
    const Ints more = Columns::add(Columns::integers(kMore),
                                   Columns::multiply_low(scale, Columns::integers(0 - kOffset)));
    return Columns::add(Columns::multiply_low(codes, scale),
                        Columns::multiply_low(more, Columns::integers(0x01010101u)));
  }

  template <uint32_t kOffset>
  static void prepare_pairs_of_starts(const InputGroup& first, uint32_t n_groups, std::byte* out,
                                      uint64_t stride) {
    for (uint32_t g = 0; g < n_groups; ++g, out += stride) {
      int32_t halves[2];
      Columns::template pair_starts<kOffset>(first.codes + uint64_t{32} * g, halves);
      store_number(out, halves[0]);
      store_number(out + 4, halves[1]);
    }
  }
};

// A row of q16_32, alone or among others.
template <class Columns>
struct Int16RowTile : DirectRowTile<Columns> {
  static constexpr uint32_t kTileRows = Columns::kInt16Rows;
  static constexpr uint32_t interleaved_rows(uint32_t n) { return n; }
  template <class>
  static constexpr uint32_t kCodes = 16;

  template <class>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    return {reinterpret_cast<const int8_t*>(row.codes) + uint64_t{64} * g,
            reinterpret_cast<const float*>(row.codes + uint64_t{2} * k) + g, nullptr, nullptr};
  }
  template <uint32_t, uint32_t kRegisters>
  static void dot(auto& sums, const auto* codes, const auto& x) {
    dot_int16<Columns, kRegisters>(sums, codes, x);
  }
};

// A row and several panels: what is loaded of the row serves all of them. A loop over what a struct
// holds is unrolled early, or it goes through memory.
template <class Row, uint32_t kPanels_, uint32_t kTileRows_>
struct MultiPanelRowTile : Row {
  using Single = Row;
  using Columns = typename Single::Registers;
  using Registers = MultiPanelRowTile;
  static constexpr uint32_t kPanels = kPanels_, kTileRows = kTileRows_;
  static constexpr uint32_t interleaved_rows(uint32_t n) { return n; }

  struct Floats {
    typename Columns::Floats of[kPanels];
  };
  struct Ints {
    typename Columns::Ints of[kPanels];
  };

  static Floats zero() {
    return each<Floats>([](uint32_t) { return Columns::zero(); });
  }
  static Floats multiply(const Floats& a, const Floats& b) {
    return each<Floats>([&](uint32_t p) { return Columns::multiply(a.of[p], b.of[p]); });
  }
  static Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    return each<Floats>(
        [&](uint32_t p) { return Columns::multiply_add(a.of[p], b.of[p], c.of[p]); });
  }
  static Floats to_float(const Ints& v) {
    return each<Floats>([&](uint32_t p) { return Columns::to_float(v.of[p]); });
  }

  template <class Format>
  static void pack_group(const auto& group, uint32_t panel, auto& out) {
    GroupFor<Single, Format> single;
    Single::template pack_group<Format>(group, 0, single);
    for (uint32_t j = 0; j < Single::template kCodes<Format>; ++j)
      out.codes[j].of[panel] = single.codes[j];
    if constexpr (Single::template kScaleForm<Format> != ScaleForm::in_codes)
      for (uint32_t i = 0; i < Format::kDots; ++i) out.scale[i].of[panel] = single.scale[i];
    if constexpr (requires { single.minimum; }) out.minimum.of[panel] = single.minimum;
  }
  template <class Format>
  static void pack_minima(const auto& of_group, uint32_t panel, uint32_t index, auto& out) {
    for (uint32_t i = 0; i < Format::kDots; ++i)
      out.minima[Format::kDots * index + i].of[panel] = of_group.minima[i];
  }
  static void pack_factor(const auto& of_group, uint32_t panel, auto& out) {
    out.factor.of[panel] = of_group.factor;
  }
  template <class Format, uint32_t kFirst, uint32_t kCount>
  static Ints start(const InputGroup& group) {
    return each<Ints>(
        [&](uint32_t) { return Single::template start<Format, kFirst, kCount>(group); });
  }
  static Floats row_scales(const float* scale) {
    return each<Floats>([&](uint32_t) { return Single::row_scales(scale); });
  }
  template <class Format>
  static Floats sum(const InputGroup& group, uint32_t i) {
    return each<Floats>([&](uint32_t) { return Single::template sum<Format>(group, i); });
  }
  static Ints integers(uint32_t x) {
    return each<Ints>([&](uint32_t) { return Columns::integers(x); });
  }
  static typename Columns::Floats of_panel(const Floats& sums, uint32_t panel) {
    return sums.of[panel];
  }

 private:
  template <class Out>
  static Out each(const auto& make) {
    Out v;
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPanels; ++p) v.of[p] = make(p);
    return v;
  }
};

template <class Isa>
struct ChooseManyRowTile {
  using Packed = PackedRowTile<typename Isa::Columns>;
};
template <class Isa>
  requires requires { Isa::Columns::kMultiPanelRows; }
struct ChooseManyRowTile<Isa> {
  using Packed =
      MultiPanelRowTile<PackedRowTile<typename Isa::Columns>, 2, Isa::Columns::kMultiPanelRows>;
};
template <class Isa>
  requires requires { typename Isa::ManyRowTile; }
struct ChooseManyRowTile<Isa> {
  using Packed = typename Isa::ManyRowTile;
};
// A level's words for many rows.
template <class Isa>
using ManyRowTileOf = typename ChooseManyRowTile<Isa>::Packed;

// The words that a format is multiplied in: One for a few rows, Many for more.
template <class Isa, class Format, class Input = typename Format::Input>
struct RowTilesFor {
  using Direct = DirectRowTile<typename Isa::Columns>;
  using Packed = ManyRowTileOf<Isa>;
};
template <class Isa, class Format>
struct RowTilesFor<Isa, Format, Quant16Input<Isa>> {
  using Direct = Int16RowTile<typename Isa::Columns>;
  using Packed = MultiPanelRowTile<Direct, 2, Direct::kTileRows>;
};

// So many are multiplied in the words of one row, in one tile, while codes are unpacked. With more rows, with
// super-blocks (which have sums of their own) sooner, registers run out: 16 rows took up to twice as long.
template <class RowTile, class Format>
static constexpr uint32_t few_rows() {
  if (RowTile::Packed::kRows > 1) return 2;
  constexpr uint32_t kTile = RowTile::Direct::kTileRows, kFit = Format::kSuperBlock ? 6 : 8;
  return kTile < kFit ? kTile : kFit;
}

// Room for what the words want of n rows besides, or instead of, the rows; and those rows.
template <class RowTile, class Format>
static constexpr uint64_t packed_row_bytes(uint32_t n, uint32_t k) {
  return uint64_t{(n + RowTile::kRows - 1) / RowTile::kRows} * (k / 32) *
         RowTile::template kGroupBytes<Format>;
}
template <class Isa, class Format>
static inline InputRows pack_rows(const InputRows& rows, std::byte* room) {
  using RowTile = typename RowTilesFor<Isa, Format>::Packed;
  using Direct = typename RowTilesFor<Isa, Format>::Direct;
  const uint32_t n = rows.n, n_groups = rows.k / 32;
  const auto group_of = [&](uint32_t row, uint32_t g) {
    return Direct::of_row(rows.first + row * rows.stride, rows.k, g);
  };
  const auto prepare = [&]<class Row>() -> InputRows {
    if constexpr (Row::template kGroupBytes<Format> == 0 && Format::kRotation == 0) return rows;
    const uint64_t stride = packed_row_bytes<Row, Format>(1, rows.k);
    for (uint32_t row = 0; row < n; ++row)
      Row::template prepare<Format>(group_of(row, 0), n_groups, room + row * stride);
    return {rows.first, rows.stride, rows.k, n, room, stride};
  };
  if (n <= few_rows<RowTilesFor<Isa, Format>, Format>()) {
    if constexpr (Format::kRotation > 0)
      if (n == 1) Direct::template prepare_rotated<Format>(group_of(0, 0).codes, n_groups, room);
    return prepare.template operator()<Direct>();
  }
  if constexpr (RowTile::kRows == 1) {
    return prepare.template operator()<RowTile>();
  } else {
    const uint64_t stride = packed_row_bytes<RowTile, Format>(RowTile::kRows, rows.k);
    std::byte* out = room;
    for (uint32_t first = 0; first < n; first += RowTile::kRows)
      for (uint32_t g = 0; g < n_groups; ++g, out += RowTile::template kGroupBytes<Format>) {
        InputGroup groups[RowTile::kRows];
        for (uint32_t i = 0; i < RowTile::kRows; ++i)  // the last one fills up
          groups[i] = group_of(first + i < n ? first + i : n - 1, g);
        RowTile::template pack_rows<Format>(groups, out);
      }
    return {room, stride, rows.k, n};
  }
}

}  // namespace akunu::cpu
