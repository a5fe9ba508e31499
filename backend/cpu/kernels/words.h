// The words in which rows of an input are multiplied with a panel of columns (panel.h): one by one, or
// several at once where a level has instructions for that.
//
// Those of one row are the level's Columns, and what OneRow says here; with many rows PreparedRow, for
// which what a row brings to every panel is computed once, or SideBySide where a level has few registers.
// Codes of 16 bits, which a level multiplies in pairs, have PairsRow.
// Words for several are a type of the level, Isa::Together, with the same names (isa/i8mm.h has them):
//
//   Registers               which has Ints and Floats
//   kRows                   rows whose sums lie in a Floats; an Ints of codes has 4 * kRows of a column
//   kPanels                 panels whose sums lie in a Floats
//   kCodes<Format>          registers of a group's codes
//   kTileRows               rows of a tile
//   kInterleaved            how many of those (in the words' sense) take turns at a group's products
//   dot<kLargest, kRegisters>(sums, codes, x)
//                           sums[i] += codes . the i-th of them, whose own codes are at x[i]; dot_signed too
//   arrange<Format>(group, panel, out)
//                           a group of one of the panels, from how it was unpacked
//   arrange_rows<Format>(groups, out)
//                           a group of kRows rows of the input, kGroupBytes<Format> bytes
//   group<Format>(row, k, g)
//                           where that lies, in rows so arranged
//   start<Format, kFirst, kCount>(group)
//                           what the products of eighths [kFirst, kFirst + kCount) are added to: less
//                           what the offset of their codes makes of them
//   kStartsInPairs<Format>  that is two int16, for dot_in_pairs in the place of dot
//   row_scales(scale)       the input's scale, for every lane of a Floats
//   minima<kDots>(group, whole)
//                           the input's sums times the whole numbers of the columns' minima
//   rows(sums)              an array of sums as an array of those of single rows
//   of_panel(sums, panel)   of one of those what Columns has
//
// What is done with a lane is the same, in the same order, so no bit depends on the words.
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

// Rows of an input, `stride` bytes apart; several are one where they are multiplied at once. A tile
// with more than there are repeats the last one.
struct InputRows {
  const std::byte* first;
  uint64_t stride;
  uint32_t k, n;
  const std::byte* prepared = nullptr;  // of PreparedRow
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
};

// A group's minima; nothing in formats without.
template <class Registers, bool kPresent>
struct GroupMinimum {
  typename Registers::Ints whole;
  typename Registers::Floats scale;
};
template <class Registers>
struct GroupMinimum<Registers, false> {};

// A group of every column, ready to be multiplied.
template <class Registers, uint32_t kCodes, class Format>
struct GroupOfColumns {
  typename Registers::Ints codes[kCodes];
  typename Registers::Floats scale[Format::kDots];
  [[no_unique_address]] GroupMinimum<Registers, Format::kHasMinimum> minimum;
};
template <class Words, class Format>
using UnpackedGroup =
    GroupOfColumns<typename Words::Registers, Words::template kCodes<Format>, Format>;

template <class Columns>
struct OneRow : Columns {
  using typename Columns::Floats;
  using typename Columns::Ints;
  using Registers = Columns;
  static constexpr uint32_t kRows = 1, kPanels = 1;
  template <class>
  static constexpr uint32_t kCodes = 8;
  template <class Format>
  static constexpr uint32_t kOffset = Format::kSigned ? Columns::kSignedOffset : Format::kOffset;
  template <class>
  static constexpr bool kStartsInPairs = false;  // see PreparedRow

  template <class Format>
  static void arrange(const auto& group, uint32_t, auto& out) {
    out = group;
  }
  template <class Format>
  static constexpr uint64_t kGroupBytes = 0;
  template <class Format>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    return {reinterpret_cast<const int8_t*>(row.codes) + uint64_t{32} * g,
            reinterpret_cast<const float*>(row.codes + k) + g,
            reinterpret_cast<const int16_t*>(row.codes + k + uint64_t{4} * (k / 32)) + 2 * g,
            nullptr};
  }

  template <class Format, uint32_t kFirst, uint32_t kCount>
  static Ints start(const InputGroup& group) {
    if constexpr (kOffset<Format> == 0) return Columns::integers(0);
    constexpr uint32_t kNegative = static_cast<uint16_t>(-static_cast<int32_t>(kOffset<Format>));
    constexpr uint32_t kLow = kFirst == 0 ? kNegative : 0;
    constexpr uint32_t kHigh = kFirst + kCount == 8 ? kNegative : 0;
    return Columns::multiply_pairs(Columns::broadcast_pair(group.half_sums),
                                   Columns::integers(kLow | kHigh << 16));
  }
  static Floats row_scales(const float* scale) { return Columns::broadcast(*scale); }
  template <uint32_t>
  static Floats minima(const InputGroup& group, Ints whole) {
    return Columns::to_float(
        Columns::multiply_pairs(Columns::broadcast_pair(group.half_sums), whole));
  }
  static const auto& rows(const auto& sums) { return sums; }
  static Floats of_panel(Floats sums, uint32_t) { return sums; }
};

// sums[i] += the products of int16 codes in pairs with those at x[i]; sums of one panel, or of several.
template <class Columns, uint32_t kRegisters, class Registers, uint32_t N>
static inline void dot_pairs(Registers (&sums)[N], const Registers* codes,
                             const int8_t* const (&x)[N]) {
  constexpr uint32_t kPanels = sizeof(Registers) / sizeof(typename Columns::Ints);
  const auto of = [](auto& registers, uint32_t panel) -> auto& {
    if constexpr (kPanels == 1)
      return registers;
    else
      return registers.of[panel];
  };
#pragma GCC unroll 16
  for (uint32_t j = 0; j < kRegisters; ++j)
#pragma GCC unroll 8
    for (uint32_t i = 0; i < N; ++i) {
      const auto two = Columns::broadcast_pair(reinterpret_cast<const int16_t*>(x[i]) + 2 * j);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kPanels; ++p)
        of(sums[i], p) = Columns::add_pairs(of(sums[i], p), of(codes[j], p), two);
    }
}

// One row among many: of each group, the starts of its dot products, or its sum where that is all that
// minima ask for (a single one, whose whole numbers are 1). Or its codes, as int16, where the level
// multiplies those (Columns::kSignedPairs): signed codes of one byte cost it more.
template <class Columns>
struct PreparedRow : OneRow<Columns> {
  using One = OneRow<Columns>;
  using typename Columns::Floats;
  using typename Columns::Ints;

  static constexpr bool kHasPairs = requires { Columns::kSignedPairs; };
  // Sums of the products that share a scale begin as two int16, where those fit less their offset, and
  // would not with it: of 8 products each, with 2 scales.
  template <class Format>
  static constexpr bool starts_in_pairs() {
    if constexpr (requires { Columns::kSumsInPairs; } && !Format::kSigned && Format::kDots == 2) {
      constexpr uint32_t kMost = 32767 / (8 * 127);  // of a code's distance from the offset
      return Format::kLargestCode > kMost && Format::kOffset <= kMost &&
             Format::kLargestCode - Format::kOffset <= kMost;
    }
    return false;
  }
  template <class Format>
  static constexpr bool kStartsInPairs = starts_in_pairs<Format>();
  template <class Format>
  static constexpr bool kPairs = Format::kSigned && kHasPairs;
  template <class Format>
  static constexpr bool kHasSum = Format::kHasMinimum && Format::kDots == 1;
  template <class Format>
  static constexpr bool kHasStarts = One::template kOffset<Format> != 0;
  template <class Format>
  static constexpr uint32_t kNumbers = kHasSum<Format>      ? 1
                                       : kHasStarts<Format> ? Format::kDots
                                                            : 0;
  template <class Format>
  static constexpr uint32_t kCodes = kPairs<Format> ? 16 : 8;
  template <class Format>
  static constexpr uint64_t kGroupBytes = kPairs<Format> ? 64 : 4 * kNumbers<Format>;

  template <class Format>
  static void arrange(const auto& group, uint32_t panel, auto& out) {
    if constexpr (kPairs<Format>) {
      for (uint32_t j = 0; j < 8; ++j)
        Columns::widen(group.codes[j], out.codes[j], out.codes[8 + j]);
      out.scale[0] = group.scale[0];
    } else {
      One::template arrange<Format>(group, panel, out);
    }
  }
  template <class Format>
  static void prepare(const InputGroup& first, uint32_t n_groups, std::byte* out) {
    if constexpr (kPairs<Format>) {
      static_assert(kNumbers<Format> == 0 && Format::kDots == 1);
      for (uint32_t g = 0; g < n_groups; ++g, out += kGroupBytes<Format>)
        Columns::widen_codes(first.codes + uint64_t{32} * g, out);
    } else if constexpr (kStartsInPairs<Format>) {
      for (uint32_t g = 0; g < n_groups; ++g, out += kGroupBytes<Format>) {
        int32_t halves[2];
        Columns::template pair_starts<Format::kOffset>(first.codes + uint64_t{32} * g, halves);
        put(out, halves[0]);
        put(out + 4, halves[1]);
      }
    } else {
      prepare_sums<Format>(first.half_sums, n_groups, out);
    }
  }

  template <class Format>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    InputGroup group = One::template group<Format>(row, k, g);
    group.prepared = row.prepared + g * kGroupBytes<Format>;
    if constexpr (kPairs<Format>) group.codes = reinterpret_cast<const int8_t*>(group.prepared);
    return group;
  }
  template <class Format, uint32_t kFirst, uint32_t>
  static Ints start(const InputGroup& group) {
    if constexpr (!kHasStarts<Format>) return Columns::integers(0);
    return Columns::integers(load_unaligned<uint32_t>(group.prepared + (kFirst == 0 ? 0 : 4)));
  }
  template <uint32_t kDots>
  static Floats minima(const InputGroup& group, Ints whole) {
    if constexpr (kDots == 1) return Columns::broadcast(load_unaligned<float>(group.prepared));
    return One::template minima<kDots>(group, whole);
  }
  template <uint32_t kRegisters>
  static void dot_signed(auto& sums, const auto* codes, const auto& x) {
    if constexpr (kHasPairs)
      dot_pairs<Columns, kRegisters>(sums, codes, x);
    else
      Columns::template dot_signed<kRegisters>(sums, codes, x);
  }

 private:
  template <class Format>
  static void prepare_sums(const int16_t* half_sums, uint32_t n_groups, std::byte* out) {
    static_assert(!kHasSum<Format> || !kHasStarts<Format>);
    constexpr int32_t kOffset = static_cast<int32_t>(One::template kOffset<Format>);
    for (uint32_t g = 0; g < n_groups; ++g, half_sums += 2, out += kGroupBytes<Format>) {
      const int32_t low = half_sums[0], high = half_sums[1];
      if constexpr (kHasSum<Format>)
        put(out, static_cast<float>(low + high));
      else if constexpr (kNumbers<Format> == 1)
        put(out, -kOffset * (low + high));
      else if constexpr (kNumbers<Format> == 2) {
        put(out, -kOffset * low);
        put(out + 4, -kOffset * high);
      }
    }
  }
  template <class Number>
  static void put(std::byte* p, Number number) {
    __builtin_memcpy(p, &number, sizeof(number));
  }
};

// A row of q16_32, alone or among others.
template <class Columns>
struct PairsRow : OneRow<Columns> {
  static constexpr uint32_t kTileRows = 4, kInterleaved = 4;
  template <class>
  static constexpr uint32_t kCodes = 16;

  template <class>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    return {reinterpret_cast<const int8_t*>(row.codes) + uint64_t{64} * g,
            reinterpret_cast<const float*>(row.codes + uint64_t{2} * k) + g, nullptr, nullptr};
  }
  template <uint32_t, uint32_t kRegisters>
  static void dot(auto& sums, const auto* codes, const auto& x) {
    dot_pairs<Columns, kRegisters>(sums, codes, x);
  }
};

// A row and several panels: what is loaded of the row serves all of them. A loop over what a struct
// holds is unrolled early, or it goes through memory.
template <class Row, uint32_t kPanels_>
struct SideBySide : Row {
  using One = Row;
  using Columns = typename One::Registers;
  using Registers = SideBySide;
  static constexpr uint32_t kPanels = kPanels_;

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
  static void arrange(const auto& group, uint32_t panel, auto& out) {
    UnpackedGroup<One, Format> single;
    One::template arrange<Format>(group, 0, single);
    for (uint32_t j = 0; j < One::template kCodes<Format>; ++j)
      out.codes[j].of[panel] = single.codes[j];
    for (uint32_t i = 0; i < Format::kDots; ++i) out.scale[i].of[panel] = single.scale[i];
    if constexpr (Format::kHasMinimum) {
      out.minimum.whole.of[panel] = single.minimum.whole;
      out.minimum.scale.of[panel] = single.minimum.scale;
    }
  }
  template <class Format, uint32_t kFirst, uint32_t kCount>
  static Ints start(const InputGroup& group) {
    return each<Ints>([&](uint32_t) { return One::template start<Format, kFirst, kCount>(group); });
  }
  static Floats row_scales(const float* scale) {
    return each<Floats>([&](uint32_t) { return One::row_scales(scale); });
  }
  template <uint32_t kDots>
  static Floats minima(const InputGroup& group, const Ints& whole) {
    return each<Floats>(
        [&](uint32_t p) { return One::template minima<kDots>(group, whole.of[p]); });
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
struct WordsOf {
  using Many = PreparedRow<typename Isa::Columns>;
};
template <class Isa>
  requires requires { Isa::Columns::kSideBySide; }
struct WordsOf<Isa> {
  using Many = SideBySide<PreparedRow<typename Isa::Columns>, Isa::Columns::kSideBySide>;
};
template <class Isa>
  requires requires { typename Isa::Together; }
struct WordsOf<Isa> {
  using Many = typename Isa::Together;
};
// A level's words for many rows.
template <class Isa>
using ManyRows = typename WordsOf<Isa>::Many;

// The words that a format is multiplied in: One for a few rows, Many for more.
template <class Isa, class Format, class Input = typename Format::Input>
struct WordsFor {
  using One = OneRow<typename Isa::Columns>;
  using Many = ManyRows<Isa>;
};
template <class Isa, class Format>
struct WordsFor<Isa, Format, Quant16Input<Isa>> {
  using One = PairsRow<typename Isa::Columns>;
  using Many = SideBySide<One, 2>;
};

// So many are multiplied in the words of one row, in one tile.
template <class Words>
static constexpr uint32_t few_rows() {
  return Words::Many::kRows == 1 ? Words::One::kTileRows : 2;
}

// Room for what the words want of n rows besides, or instead of, the rows; and those rows.
template <class Words, class Format>
static constexpr uint64_t arranged_bytes(uint32_t n, uint32_t k) {
  return uint64_t{(n + Words::kRows - 1) / Words::kRows} * (k / 32) *
         Words::template kGroupBytes<Format>;
}
template <class Isa, class Format>
static inline InputRows arrange_rows(const InputRows& rows, std::byte* room) {
  using Words = typename WordsFor<Isa, Format>::Many;
  using One = typename WordsFor<Isa, Format>::One;
  const uint32_t n = rows.n, n_groups = rows.k / 32;
  if (n <= few_rows<WordsFor<Isa, Format>>()) return rows;
  const uint64_t stride = arranged_bytes<Words, Format>(Words::kRows, rows.k);
  const auto group_of = [&](uint32_t row, uint32_t g) {
    return One::template group<Format>({rows.first + row * rows.stride, nullptr}, rows.k, g);
  };
  if constexpr (Words::template kGroupBytes<Format> == 0) {
    return rows;
  } else if constexpr (Words::kRows == 1) {
    for (uint32_t row = 0; row < n; ++row)
      Words::template prepare<Format>(group_of(row, 0), n_groups, room + row * stride);
    return {rows.first, rows.stride, rows.k, n, room, stride};
  } else {
    std::byte* out = room;
    for (uint32_t first = 0; first < n; first += Words::kRows)
      for (uint32_t g = 0; g < n_groups; ++g, out += Words::template kGroupBytes<Format>) {
        InputGroup groups[Words::kRows];
        for (uint32_t i = 0; i < Words::kRows; ++i)  // the last one fills up
          groups[i] = group_of(first + i < n ? first + i : n - 1, g);
        Words::template arrange_rows<Format>(groups, out);
      }
    return {room, stride, rows.k, n};
  }
}

}  // namespace akunu::cpu
