// The words in which rows of an input are multiplied with a panel of columns (panel.h): one by one, or
// several at once where a level has instructions for that.
//
// Those of one row are the level's Columns, and what OneRow says here. Words for several are a type of
// the level, Isa::Together, with the same names (isa/i8mm.h has them):
//
//   kRows                   rows whose sums lie in a Floats; an Ints of codes has 4 * kRows of a column
//   kTileRows               rows of a tile
//   kOffset<Format>         what has to be subtracted from codes while they are multiplied
//   arrange<Format>(group, out)
//                           a group of the panel, from how it was unpacked
//   arrange_rows<Format>(groups, out)
//                           a group of kRows rows of the input, kGroupBytes<Format> bytes
//   group<Format>(row, k, g)
//                           where that lies, in rows so arranged
//   row_scales(scale)       the input's scale, for every lane of a Floats
//   minima<kDots>(half_sums, whole)
//                           the input's sums times the whole numbers of the columns' minima
//   rows(sums)              an array of sums as an array of those of single rows, as Columns has them
//
// What is done with a lane is the same, in the same order, so no bit depends on the words.
#pragma once

#include <stdint.h>

#include <cstddef>

namespace akunu::cpu {

// Rows of an input, `stride` bytes apart; several are one where they are multiplied at once. A tile
// with more than there are repeats the last one.
struct InputRows {
  const std::byte* first;
  uint64_t stride;
  uint32_t k, n;
};
// Where one of its groups has what.
struct InputGroup {
  const int8_t* codes;
  const float* scale;
  const int16_t* half_sums;
};

template <class Columns>
struct OneRow : Columns {
  using typename Columns::Floats;
  using typename Columns::Ints;
  static constexpr uint32_t kRows = 1;
  template <class Format>
  static constexpr uint32_t kOffset = Format::kSigned ? Columns::kSignedOffset : Format::kOffset;

  template <class Format>
  static void arrange(const auto& group, auto& out) {
    out = group;
  }
  template <class Format>
  static constexpr uint64_t kGroupBytes = 0;
  template <class Format>
  static InputGroup group(const std::byte* row, uint32_t k, uint32_t g) {
    return {reinterpret_cast<const int8_t*>(row) + uint64_t{32} * g,
            reinterpret_cast<const float*>(row + k) + g,
            reinterpret_cast<const int16_t*>(row + k + uint64_t{4} * (k / 32)) + 2 * g};
  }

  static Floats row_scales(const float* scale) { return Columns::broadcast(*scale); }
  template <uint32_t>
  static Floats minima(const int16_t* half_sums, Ints whole) {
    return Columns::to_float(Columns::multiply_pairs(Columns::broadcast_pair(half_sums), whole));
  }
  static const auto& rows(const auto& sums) { return sums; }
};

template <class Isa>
struct WordsOf {
  using Many = OneRow<typename Isa::Columns>;
};
template <class Isa>
  requires requires { typename Isa::Together; }
struct WordsOf<Isa> {
  using Many = typename Isa::Together;
};
// A level's words for many rows.
template <class Isa>
using ManyRows = typename WordsOf<Isa>::Many;

// So many are multiplied in the words of one row, in one tile.
template <class Isa>
static constexpr uint32_t few_rows() {
  return ManyRows<Isa>::kRows == 1 ? Isa::Columns::kTileRows : 2;
}

// Room for n rows as the words want them, nothing where they stay as they are; and those rows.
template <class Words, class Format>
static constexpr uint64_t arranged_bytes(uint32_t n, uint32_t k) {
  return uint64_t{(n + Words::kRows - 1) / Words::kRows} * (k / 32) *
         Words::template kGroupBytes<Format>;
}
template <class Isa, class Format>
static inline InputRows arrange_rows(const InputRows& rows, std::byte* room) {
  using Words = ManyRows<Isa>;
  if constexpr (Words::kRows == 1) {
    return rows;
  } else {
    const uint32_t n = rows.n;
    if (n <= few_rows<Isa>()) return rows;
    std::byte* out = room;
    for (uint32_t first = 0; first < n; first += Words::kRows)
      for (uint32_t g = 0; g < rows.k / 32; ++g, out += Words::template kGroupBytes<Format>) {
        InputGroup groups[Words::kRows];
        for (uint32_t i = 0; i < Words::kRows; ++i) {
          const uint32_t row = first + i < n ? first + i : n - 1;  // the last one fills up
          groups[i] = OneRow<typename Isa::Columns>::template group<Format>(
              rows.first + row * rows.stride, rows.k, g);
        }
        Words::template arrange_rows<Format>(groups, out);
      }
    return {room, arranged_bytes<Words, Format>(Words::kRows, rows.k), rows.k, n};
  }
}

}  // namespace akunu::cpu
