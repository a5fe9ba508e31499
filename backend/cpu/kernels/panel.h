// Quantised matmuls: panels of Columns::kCount weight rows side by side, a weight row (a column of the
// result) in each lane.
//
// What is multiplied is a group of 32 weights with a group of 32 codes of the input. Its dot
// product is a whole number, and exact; then, in float32 and in this order,
//
//   t   = float(dot) * scale
//   t   = float(sum) * minimum + t       with minima: sum = the input's codes
//   acc = t * input_scale + acc          groups in order of k
//
// In a super-block, whose groups' scales and minima are whole numbers times a factor each,
//
//   t   = float(dot * scale)             exact, also where each half of a group has a dot and a scale
//   b   = t * input_scale + b            from 0 on, groups in order of k
//   acc = (float(sum) * input_scale) * minimum + acc   with minima, groups in order of k, halves likewise
//   acc = b * factor + acc                             behind the last group
//
// so a result has the same bits alone, among 16 rows or 512, in every lane, tile and slice.
//
// A format is a trait, and this is all that it adds:
//
//   kFormat              number_of the format
//   kDots                1 or 2 scales in a group of 32, and as many minima
//   kLargestCode         codes are 0 .. kLargestCode, or, with kSigned, int8
//   kOffset              what is subtracted from a code
//   kHasMinimum          a group has them
//   kGroups              groups in a block, or in two that are read together
//   kSuperBlock          a block is one; then kLowestScale and kHighestScale too
//   kSpan                groups of a block that code is written out for; it goes over the block's spans in a loop
//   row_bytes(k)
//   open(panel, group)              what the groups of the block that begins with `group` share: its
//                                   scales (and minima), in few registers
//   open_one(panel, group)          the same where blocks are read in pairs and a row's last one is alone
//   next_span(block)                puts what belongs to the next span where this one's was
//   Raw, load<i>(panel, group, span, raw)
//                                   of the block that begins with `group`, the bytes that the span's i-th group is
//                                   the first to need; others may share them
//   codes<i>(block, raw, out)       the codes of the span's i-th group: register j has, of every
//                                   column, weights 4 j to 4 j + 3; of 16 bits, 2 j and 2 j + 1
//   direct_codes<i, kRows>(block, raw, out)
//                                   likewise for a few rows, as it costs less to have them. Times a power of two: those of
//                                   super-blocks kCodeFactor<i>, the upper half of others kUpperFactor<kRows>; they fit a
//                                   byte. And turned, where is_rotated<i, kRows, what `open` returns>: of every kRotation
//                                   codes (0: never) the last two come first
//   scale<i>(block, group)          its scale (and minimum)
//   direct_scale<i>(block, group)      likewise for a few rows; of super-blocks times kScaleFactor<i>, a power of two
//   minima<i>(block, out)           of a super-block's group; its factor is block.d
//
// `load` and `open` read nothing outside the rows: the last row may end where the file does.
#pragma once

#include <type_traits>

#include "cpu/kernels/formats.h"
#include "cpu/kernels/row_tile.h"

namespace akunu::cpu {

template <uint32_t kValue>
struct Constant {
  static constexpr uint32_t value = kValue;
};

// kCount rows of a weight; row c begins at first + c * stride.
struct Panel {
  const std::byte* first;
  uint64_t stride;
};
// The same; while it is read, what follows it in memory is prefetched, as many bytes as are read. Its
// lines lie one after another, but groups touch all rows in turn, an order that no processor foresees.
// Loads keep their place between requests where rows are so few that memory counts more than instructions.
template <int kInto, bool kInOrder>
struct PrefetchingPanel : Panel {};
// The last row is prefetched last and wanted soon after the first one: so all are prefetched this many bytes sooner
// than one panel ahead. Not into L1, which two panels fill: there it costs a Zen 4 up to a tenth.
template <int kInto>
constexpr uint64_t kPrefetchLead = kInto == kIntoL1 ? 0 : 4096;
template <int kInto>
static inline uint64_t prefetch_distance(uint32_t n_rows, uint64_t row_bytes) {
  return n_rows * row_bytes + kPrefetchLead<kInto>;
}
// Where that begins which is prefetched while byte `byte` of every row is read.
template <class Columns, int kInto>
static inline const std::byte* prefetch_address(const Panel& panel, uint64_t byte) {
  return panel.first + prefetch_distance<kInto>(Columns::kCount, panel.stride) +
         Columns::kCount * byte;
}

template <class Isa, class Format>
struct PanelProduct {
  using Columns = typename Isa::Columns;
  using Group = GroupFor<typename RowTilesFor<Isa, Format>::Direct, Format>;
  struct RotatedGroup : Group {  // of turned codes
    static constexpr bool kIsRotated = true;
  };
  using OfGroup = SuperBlock<Columns, Format, 1>;  // what a group has of its super-block
  static constexpr bool sums_are_exact() {
    if constexpr (Format::kSuperBlock) {
      constexpr ProductRange kRange = product_range<Format>();
      return 32 * 127 * (kRange.highest > -kRange.lowest ? kRange.highest : -kRange.lowest) <
             1 << 24;
    }
    return true;
  }
  static_assert(sums_are_exact(), "a float has 24 bits");

  // Calls use(group, g, of_group) for every group of the panel, in order, and close(of_group, g) behind the last one
  // of a super-block, which began with group g. For kFewRows rows, 0: many, codes are direct_codes, and scales parts of what
  // they are where codes are multiples: products are the same, and exact.
  template <uint32_t kFewRows = 0>
  static inline void for_each_group(const auto& panel, uint32_t k, const auto& use,
                                    const auto& close) {
    constexpr uint32_t kSpans = Format::kGroups / Format::kSpan;
    uint32_t first = 0;
    for (; first + Format::kGroups <= k / 32; first += Format::kGroups) {
      auto block = Format::open(to_load(panel), first);
      OfGroup of_group;
      if constexpr (Format::kSuperBlock) of_group.factor = block.d;
      const auto unpack_span = [&](uint32_t span) {
        typename Format::Raw raw;
        unpack<0, Format::kSpan, kFewRows>(panel, block, raw, of_group, Place{first, span}, use);
      };
      if constexpr (kSpans == 1) {
        unpack_span(0);
      } else {
        // A loop also for the compiler: written out, each load moves on by a super-block at a time, two or three
        // lines. A Zen 5 foresees such strides, and loses a fifth of its bandwidth by it (decision 11).
        for (uint32_t span = 0; span < kSpans; ++span) {
          asm("" : "+r"(span));
          unpack_span(span);
          Format::next_span(block);
        }
      }
      if constexpr (Format::kSuperBlock) close(of_group, first);
    }
    if constexpr (!Format::kSuperBlock && Format::kGroups > 1)
      if (first < k / 32) {
        OfGroup none;
        typename Format::Raw raw;
        unpack<0, 1, kFewRows>(panel, Format::open_one(panel, first), raw, none, Place{first, 0},
                               use);
      }
  }

  // sums[r] += the r-th of the input's rows . panel, for R rows in the words' sense.
  template <class RowTile, uint32_t R, uint32_t kFewRows>
  static inline void accumulate(const auto& group, uint32_t g, const InputRows& inputs,
                                typename RowTile::Floats (&sums)[R]) {
    constexpr uint32_t N = RowTile::interleaved_rows(R);
    InputRow row{inputs.first, inputs.prepared};
#pragma GCC unroll 16
    for (uint32_t first = 0; first < R; first += N) {
      decltype(RowTile::template group<Format>(row, inputs.k, g)) input[N];
#pragma GCC unroll 16
      for (uint32_t i = 0; i < N; ++i) {
        input[i] = RowTile::template group<Format>(row, inputs.k, g);
        next_row(inputs, first + i, row);
      }
      typename RowTile::Floats t[N];
      scaled_dots<RowTile, kFewRows>(group, input, t);
#pragma GCC unroll 16
      for (uint32_t i = 0; i < N; ++i) {
        if constexpr (Format::kHasMinimum && !Format::kSuperBlock)
          t[i] = RowTile::multiply_add(RowTile::template sum<Format>(input[i], 0), group.minimum,
                                       t[i]);
        typename RowTile::Floats& sum = sums[first + i];
        sum = RowTile::multiply_add(t[i], RowTile::row_scales(input[i].scale), sum);
      }
    }
  }

  // sums[r] += the minima of group g.
  template <class RowTile, uint32_t R>
  static inline void add_minima(const typename RowTile::Floats* minima, uint32_t g,
                                const InputRows& inputs, typename RowTile::Floats (&sums)[R]) {
    InputRow row{inputs.first, inputs.prepared};
#pragma GCC unroll 16
    for (uint32_t r = 0; r < R; ++r) {
      const auto input = RowTile::template group<Format>(row, inputs.k, g);
#pragma GCC unroll 2
      for (uint32_t j = 0; j < Format::kDots; ++j)
        sums[r] =
            RowTile::multiply_add(minima[j], RowTile::template sum<Format>(input, j), sums[r]);
      next_row(inputs, r, row);
    }
  }

 private:
  static inline void next_row(const InputRows& inputs, uint32_t r, InputRow& row) {
    const bool is_last = r + 1 >= inputs.n;
    row.codes += is_last ? 0 : inputs.stride;
    row.prepared += is_last ? 0 : inputs.prepared_stride;
  }

  // The dot products of a group with several rows, times its scales.
  template <class RowTile, uint32_t kFewRows, uint32_t N>
  static inline void scaled_dots(const auto& group, const auto (&input)[N],
                                 typename RowTile::Floats (&t)[N]) {
    constexpr uint32_t kEighths = 8 / Format::kDots;
    constexpr ScaleForm kScaleForm = RowTile::template kScaleForm<Format>;
    typename RowTile::Ints dots[N];
    if constexpr (kScaleForm == ScaleForm::pairs) {
#pragma GCC unroll 16
      for (auto& sum : dots) sum = RowTile::integers(0);
      add_scaled<RowTile, 0>(group, input, dots);
      if constexpr (Format::kDots == 2) add_scaled<RowTile, 1>(group, input, dots);
    } else if constexpr (kScaleForm == ScaleForm::in_codes) {
      dot<RowTile, 0, 8, 1>(group, input, dots);
    } else {
      dot<RowTile, 0, kEighths, Format::template kUpperFactor<kFewRows>>(group, input, dots);
    }
    if constexpr (kScaleForm == ScaleForm::floats) {
#pragma GCC unroll 16
      for (uint32_t i = 0; i < N; ++i)
        t[i] = RowTile::multiply(RowTile::to_float(dots[i]), group.scale[0]);
      if constexpr (Format::kDots == 2) {
        dot<RowTile, kEighths, kEighths, 1>(group, input, dots);
#pragma GCC unroll 16
        for (uint32_t i = 0; i < N; ++i)
          t[i] = RowTile::multiply_add(RowTile::to_float(dots[i]), group.scale[1], t[i]);
      }
    } else {
#pragma GCC unroll 16
      for (uint32_t i = 0; i < N; ++i) t[i] = RowTile::to_float(dots[i]);
    }
  }

  // Eighths [kFirst, kFirst + kCount) of a group, less the offset of their codes. Of these the upper half may be
  // kUpperFactor as large.
  template <class RowTile, uint32_t kFirst, uint32_t kCount, uint32_t kUpperFactor, uint32_t N>
  static inline void dot(const auto& group, const auto (&input)[N],
                         typename RowTile::Ints (&dots)[N]) {
    const auto codes_of = [](const auto& row) {
      if constexpr (requires { group.kIsRotated; })
        return RowTile::template rotated<Format>(row);
      else
        return row.codes + 4 * kFirst * RowTile::kRows;
    };
    decltype(codes_of(input[0])) x[N];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < N; ++i) {
      dots[i] = RowTile::template start<Format, kFirst, kCount>(input[i]);
      x[i] = codes_of(input[i]);
    }
    constexpr uint32_t kCodes = RowTile::template kCodes<Format>, kRegisters = kCodes * kCount / 8;
    const auto* const codes = group.codes + kCodes * kFirst / 8;
    if constexpr (kUpperFactor > 1)
      RowTile::template dot_upper_scaled<kUpperFactor, kRegisters>(dots[0], codes, x[0]);
    else if constexpr (Format::kSigned)
      RowTile::template dot_signed<kRegisters>(dots, codes, x);
    else if constexpr (RowTile::template kScaleForm<Format> == ScaleForm::in_codes)
      RowTile::template dot<255, kRegisters>(dots, codes, x);
    else
      RowTile::template dot<Format::kLargestCode, kRegisters>(dots, codes, x);
  }
  // sums += the dots that meet the group's kDot-th scale, times that.
  template <class RowTile, uint32_t kDot, uint32_t N>
  static inline void add_scaled(const GroupFor<RowTile, Format>& group, const auto (&input)[N],
                                typename RowTile::Ints (&sums)[N]) {
    constexpr uint32_t kRegisters = 8 / Format::kDots, kFirst = kDot * kRegisters;
    typename RowTile::Ints starts[N];
    const int8_t* x[N];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < N; ++i) {
      starts[i] = RowTile::template start<Format, kFirst, kRegisters>(input[i]);
      x[i] = input[i].codes + 4 * kFirst;
    }
    RowTile::template dot_scaled<Format::kLargestCode, Format::kOffset, kRegisters>(
        sums, starts, group.codes + kFirst, x, group.scale[kDot]);
  }

  // A span of the block that begins with group `first`.
  struct Place {
    uint32_t first, span;
  };

  // Loads ask as they go. But the groups of a super-block that share bytes are loaded at once: their requests would
  // come at once too, and none while they are multiplied. They ask themselves, each before and after its products.
  static const auto& to_load(const auto& panel) {
    if constexpr (Format::kSuperBlock)
      return static_cast<const Panel&>(panel);
    else
      return panel;
  }
  template <uint32_t>
  static inline void prefetch(const Panel&, const Place&, const auto&) {}
  // For the kHalf-th half of a group's share of the span.
  template <uint32_t kHalf, int kInto, bool kInOrder>
  static inline void prefetch(const PrefetchingPanel<kInto, kInOrder>& panel, const Place& place,
                              const auto& read) {
    if constexpr (Format::kSuperBlock) {
      constexpr uint64_t kRowBytes = Format::row_bytes(32 * Format::kGroups);
      constexpr uint64_t kBytes = Columns::kCount * kRowBytes * Format::kSpan / Format::kGroups;
      constexpr uint64_t kBegin = kHalf * kBytes / (2 * Format::kSpan);
      constexpr uint64_t kEnd = (kHalf + 1) * kBytes / (2 * Format::kSpan);
      const std::byte* const span =
          prefetch_address<Columns, kInto>(panel, place.first / Format::kGroups * kRowBytes) +
          place.span * kBytes;
#pragma GCC unroll 8
      for (uint64_t line = (kBegin + kCacheLine - 1) / kCacheLine * kCacheLine; line < kEnd;
           line += kCacheLine)
        Columns::template prefetch<kInto>(span + line, read);
    }
  }

  // Groups from the span's kIndex-th on, as many as kCount.
  template <uint32_t kIndex, uint32_t kCount, uint32_t kFewRows>
  static inline void unpack(const auto& panel, const auto& block, typename Format::Raw& raw,
                            OfGroup& of_group, const Place& place, const auto& use) {
    Format::template load<kIndex>(to_load(panel), place.first, place.span, raw);
    using Block = std::remove_cvref_t<decltype(block)>;
    constexpr bool kRotated = Format::template is_rotated<kIndex, kFewRows, Block>;
    std::conditional_t<kRotated, RotatedGroup, Group> group;
    if constexpr (kFewRows > 0) {
      Format::template direct_scale<kIndex>(block, group);
      Format::template direct_codes<kIndex, kFewRows>(block, raw, group.codes);
      constexpr float kCodeFactor = static_cast<float>(Format::template kCodeFactor<kIndex>) *
                                    static_cast<float>(Format::template kScaleFactor<kIndex>);
      if constexpr (kCodeFactor > 1)
        for (auto& scale : group.scale)
          scale = Columns::multiply(scale, Columns::broadcast(1.0f / kCodeFactor));
    } else {
      Format::template scale<kIndex>(block, group);
      Format::template codes<kIndex>(block, raw, group.codes);
    }
    if constexpr (Format::kSigned)
      for (auto& codes : group.codes) codes = Columns::signed_codes(codes);
    if constexpr (Format::kSuperBlock && Format::kHasMinimum)
      Format::template minima<kIndex>(block, of_group.minima);
    prefetch<2 * kIndex>(panel, place, group.codes[0]);
    use(group, place.first + place.span * Format::kSpan + kIndex, of_group);
    prefetch<2 * kIndex + 1>(panel, place, group.codes[7]);
    if constexpr (kCount > 1)
      unpack<kIndex + 1, kCount - 1, kFewRows>(panel, block, raw, of_group, place, use);
  }
};

// A group of panels side by side, and what super-blocks of them share: those lie behind all groups.
template <class Isa, class Format>
using PackedGroup = GroupFor<typename RowTilesFor<Isa, Format>::Packed, Format>;
template <class Isa, class Format>
using PackedSuperBlock =
    SuperBlock<typename RowTilesFor<Isa, Format>::Packed::Registers, Format, Format::kGroups>;
template <class Isa, class Format>
static constexpr uint64_t packed_panel_bytes(uint32_t k) {
  uint64_t bytes = uint64_t{k / 32} * sizeof(PackedGroup<Isa, Format>);
  if (Format::kSuperBlock)
    bytes += uint64_t{k / 32 / Format::kGroups} * sizeof(PackedSuperBlock<Isa, Format>);
  return bytes;
}

// A few rows, which take direct_codes, or a tile of many. Minima of super-blocks that are added at the end are 8 or 16 sums
// that wait for each other, longer than a processor looks ahead: few rows have them added with each group. Those of a
// tile of many take turns at the end, and have no registers for two sums of each row before.
enum class Rows { few, many };

// Rows [first, first + n) of the input in a tile of kRows, times the groups that for_each(use, close) calls
// those with (PanelProduct::for_each_group); out(panel, row, sums) receives the panels' results.
template <class Isa, class Format, class RowTile, uint32_t kRows, Rows kAre>
static inline void multiply_groups(const InputRows& inputs, uint32_t first, uint32_t n,
                                   const auto& for_each, const auto& out) {
  constexpr uint32_t R = kRows / RowTile::kRows;
  typename RowTile::Floats sums[R];  // unrolled early, or they are stored with every group
#pragma GCC unroll 16
  for (auto& sum : sums) sum = RowTile::zero();
  const InputRows rows{inputs.first + first / RowTile::kRows * inputs.stride,
                       inputs.stride,
                       inputs.k,
                       (n + RowTile::kRows - 1) / RowTile::kRows,
                       inputs.prepared + first * inputs.prepared_stride,
                       inputs.prepared_stride};
  using Product = PanelProduct<Isa, Format>;
  constexpr uint32_t kFewRows = kAre == Rows::few ? kRows : 0;
  if constexpr (Format::kSuperBlock) {
    typename RowTile::Floats of_block[R];
    const auto begin = [&] {
#pragma GCC unroll 16
      for (auto& sum : of_block) sum = RowTile::zero();
    };
    begin();
    for_each(
        [&](const auto& group, uint32_t g, const auto& of_group) {
          Product::template accumulate<RowTile, R, kFewRows>(group, g, rows, of_block);
          if constexpr (Format::kHasMinimum && kAre == Rows::few)
            Product::template add_minima<RowTile, R>(of_group.minima, g, rows, sums);
        },
        [&](const auto& block, uint32_t g) {
          if constexpr (Format::kHasMinimum && kAre == Rows::many)
            for (uint32_t i = 0; i < Format::kGroups; ++i)
              Product::template add_minima<RowTile, R>(block.minima + Format::kDots * i, g + i,
                                                       rows, sums);
#pragma GCC unroll 16
          for (uint32_t r = 0; r < R; ++r)
            sums[r] = RowTile::multiply_add(of_block[r], block.factor, sums[r]);
          begin();
        });
  } else {
    for_each(
        [&](const auto& group, uint32_t g, const auto&) {
          Product::template accumulate<RowTile, R, kFewRows>(group, g, rows, sums);
        },
        [] {});
  }
  const auto& rows_of_sums = RowTile::rows(sums);
#pragma GCC unroll 16
  for (uint32_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (uint32_t p = 0; p < RowTile::kPanels; ++p)
      if (r < n) out(p, first + r, RowTile::of_panel(rows_of_sums[r], p));
}

// Puts all groups of up to kPanels panels of `k` weights side by side. Flattened, as what is below: a word
// or a trait that stayed a function would take its vectors through memory. Not under AddressSanitizer,
// whose checks of all that take minutes to compile.
template <class Isa, class Format>
#ifndef __SANITIZE_ADDRESS__
[[gnu::flatten]]
#endif
[[gnu::noinline]] static void pack_panels(
    const Panel (&panels)[RowTilesFor<Isa, Format>::Packed::kPanels], uint32_t n_panels, uint32_t k,
    PackedGroup<Isa, Format>* groups) {
  using Product = PanelProduct<Isa, Format>;
  using Packed = typename RowTilesFor<Isa, Format>::Packed;
  auto* const super_blocks =
      reinterpret_cast<PackedSuperBlock<Isa, Format>*>(groups + k / 32);  // behind them
  for (uint32_t p = 0; p < Packed::kPanels; ++p)  // where one is missing, the first takes its place
    Product::for_each_group(
        panels[p < n_panels ? p : 0], k,
        [&](const typename Product::Group& group, uint32_t g, const auto& of_group) {
          Packed::template pack_group<Format>(group, p, groups[g]);
          if constexpr (Format::kSuperBlock && Format::kHasMinimum)
            Packed::template pack_minima<Format>(of_group, p, g % Format::kGroups,
                                                 super_blocks[g / Format::kGroups]);
        },
        [&](const typename Product::OfGroup& of_group, uint32_t g) {
          Packed::pack_factor(of_group, p, super_blocks[g / Format::kGroups]);
        });
}

struct GroupRange {
  uint32_t begin, end;
};

// The lines of the panels that come next, prefetched while unpacked ones are multiplied: unpacking takes too
// short for what memory has to bring meanwhile. As many with each group, so that branches are foreseen.
struct PrefetchStream {
  const std::byte *next = nullptr, *end = nullptr;
  uint64_t bytes = 0;  // with each group, whole lines
};
static inline void prefetch_next(PrefetchStream& stream) {
  if (stream.next >= stream.end) return;
  prefetch_lines<kIntoL2>(stream.next, stream.bytes);
  stream.next += stream.bytes;
}

// Rows are multiplied in tiles, those that are left in tiles of kRest. A last tile is taken apart where that
// leaves fewer places empty: 7 or 8 rows are two tiles of 4, 9 are one of 6 and one of 4.
template <class RowTile>
struct Tiles {
  static constexpr uint32_t kRows = RowTile::kTileRows, kRest = kRows < 4 ? kRows : 4;

  static constexpr uint32_t in_rests(uint32_t n) { return (n + kRest - 1) / kRest; }
  // How many of kRows come first.
  static constexpr uint32_t whole(uint32_t n) {
    const uint32_t tiles = n / kRows, left = n % kRows;
    const bool apart = tiles > 0 && in_rests(kRows + left) * kRest < kRows + in_rests(left) * kRest;
    return apart ? tiles - 1 : tiles;
  }
  static constexpr uint32_t count(uint32_t n) { return whole(n) + in_rests(n - whole(n) * kRows); }
};

// Rows of an input, arranged where they are more than a few (row_tile.h), times such groups of up to
// kPanels panels; out(panel, row, sums) receives the results.
template <class Isa, class Format, class Out>
#ifndef __SANITIZE_ADDRESS__
[[gnu::flatten]]
#endif
static inline void multiply_packed(const InputRows& inputs, const PackedGroup<Isa, Format>* groups,
                                   GroupRange range, const Out& out, PrefetchStream stream = {}) {
  using Packed = typename RowTilesFor<Isa, Format>::Packed;
  const auto* const super_blocks =
      reinterpret_cast<const PackedSuperBlock<Isa, Format>*>(groups + inputs.k / 32);
  const auto from_groups = [&](const auto& use, const auto& close) {
    if constexpr (Format::kSuperBlock)
      for (uint32_t g = range.begin; g < range.end; g += Format::kGroups) {
        const auto& super_block = super_blocks[g / Format::kGroups];
        for (uint32_t i = 0; i < Format::kGroups; ++i) {
          use(groups[g + i], g + i, super_block);
          prefetch_next(stream);
        }
        close(super_block, g);
      }
    else
      for (uint32_t g = range.begin; g < range.end; ++g) {
        use(groups[g], g, 0);
        prefetch_next(stream);
      }
  };
  constexpr uint32_t kTile = Tiles<Packed>::kRows, kRest = Tiles<Packed>::kRest;
  const uint32_t in_tiles = Tiles<Packed>::whole(inputs.n) * kTile;
  uint32_t first = 0;
  for (; first < in_tiles; first += kTile)
    multiply_groups<Isa, Format, Packed, kTile, Rows::many>(inputs, first, kTile, from_groups, out);
  for (; first < inputs.n; first += kRest) {
    const uint32_t left = inputs.n - first;
    multiply_groups<Isa, Format, Packed, kRest, Rows::many>(
        inputs, first, left < kRest ? left : kRest, from_groups, out);
  }
}

// A few rows take the codes as they are unpacked. A function for each number of them: in one for all of
// them the compiler keeps more in memory.
template <class Isa, class Format, uint32_t kRows, int kInto, class Out>
#ifndef __SANITIZE_ADDRESS__
[[gnu::flatten]]
#endif
[[gnu::noinline]] static void multiply_few(const InputRows& inputs, const Panel& weight,
                                           const Out& out) {
  const PrefetchingPanel<kInto, kRows <= 2> panel{weight};
  multiply_groups<Isa, Format, typename RowTilesFor<Isa, Format>::Direct, kRows, Rows::few>(
      inputs, 0, inputs.n,
      [&](const auto& use, const auto& close) {
        PanelProduct<Isa, Format>::template for_each_group<kRows>(panel, inputs.k, use, close);
      },
      out);
}

// A format with another level's words.
template <class Format, class Isa>
struct AtLevel;
template <template <class> class Format, class From, class Isa>
struct AtLevel<Format<From>, Isa> {
  using type = Format<Isa>;
};

// A single row times half a panel, then times the other half. Isa::Halves has the words for half as many columns.
template <class Isa, class Format, class Out>
static inline void multiply_half_panels(const InputRows& inputs, const Panel& weight,
                                        const Out& out) {
  using HalfWidth = typename Isa::HalfWidth;
  using HalfWidthFormat = typename AtLevel<Format, HalfWidth>::type;
  typename HalfWidth::Columns::Floats sums[2];
  for (uint32_t half = 0; half < 2; ++half)
    multiply_few<HalfWidth, HalfWidthFormat, 1, kIntoL1>(
        inputs, {weight.first + half * HalfWidth::Columns::kCount * weight.stride, weight.stride},
        [&](uint32_t, uint32_t, auto of_half) { sums[half] = of_half; });
  out(0, 0, Isa::Columns::join_halves(sums[0], sums[1]));
}

// Calls use(Constant<the first of kRows, kMore... that is no smaller than n>{}); none of them is larger than kFewRows.
template <uint32_t kFewRows, uint32_t kRows, uint32_t... kMore>
static inline void with_few_rows(uint32_t n, const auto& use) {
  if constexpr (kRows >= kFewRows)
    use(Constant<kFewRows>{});
  else if (n <= kRows)
    use(Constant<kRows>{});
  else
    with_few_rows<kFewRows, kMore...>(n, use);
}

// Rows of a whole input times up to kPanels panels. More than a few rows have been arranged. `room` is for
// the unpacked panels: packed_panel_bytes bytes, aligned to 64.
template <class Isa, class Format, class Out>
#ifndef __SANITIZE_ADDRESS__
[[gnu::flatten]]
#endif
static inline void multiply_panels(const InputRows& inputs,
                                   const Panel (&panels)[RowTilesFor<Isa, Format>::Packed::kPanels],
                                   uint32_t n_panels, uint64_t l1_panel_bytes, std::byte* room,
                                   const Out& out) {
  constexpr uint32_t kFewRows = few_rows<RowTilesFor<Isa, Format>, Format>();
  if (inputs.n > kFewRows) {
    auto* const groups = reinterpret_cast<PackedGroup<Isa, Format>*>(room);
    pack_panels<Isa, Format>(panels, n_panels, inputs.k, groups);
    const uint32_t n_rows = n_panels * Isa::Columns::kCount;
    const uint64_t bytes = n_rows * panels[0].stride;
    const uint64_t steps =
        uint64_t{Tiles<typename RowTilesFor<Isa, Format>::Packed>::count(inputs.n)} *
        (inputs.k / 32);
    const std::byte* const next =
        panels[0].first + prefetch_distance<kIntoL2>(n_rows, panels[0].stride);
    multiply_packed<Isa, Format>(
        inputs, groups, {0, inputs.k / 32},
        [&](uint32_t panel, uint32_t row, auto sums) {
          if (panel < n_panels) out(panel, row, sums);
        },
        {next, next + bytes, (bytes / kCacheLine / steps + 1) * kCacheLine});
    return;
  }
  // Super-blocks of fewer than four bits a weight compute longer than they wait: they may take half as much again
  // of L1, and halves cost them more than they bring (decision 11).
  constexpr bool kComputeBound = Format::kSuperBlock && Format::row_bytes(256) < 128;
  constexpr bool kHalfPanels =
      !kComputeBound && std::is_same_v<typename Format::Input, QuantInput<Isa>>;
  for (uint32_t panel = 0; panel < n_panels; ++panel) {
    const auto out_of_panel = [&](uint32_t, uint32_t row, auto sums) { out(panel, row, sums); };
    with_few_rows<kFewRows, 1, 2, 4, 6, 8>(inputs.n, [&](auto rows) {
      const uint64_t bytes = Isa::Columns::kCount * panels[panel].stride;
      if constexpr (rows.value <= 2 && requires { Isa::Columns::kPrefetchesIntoL1; })
        if ((kComputeBound ? bytes - bytes / 3 : bytes) <= l1_panel_bytes)
          return multiply_few<Isa, Format, rows.value, kIntoL1>(inputs, panels[panel],
                                                                out_of_panel);
      if constexpr (kHalfPanels && rows.value == 1 && requires { typename Isa::HalfWidth; })
        if (bytes / 2 <= l1_panel_bytes)
          return multiply_half_panels<Isa, Format>(inputs, panels[panel], out_of_panel);
      multiply_few<Isa, Format, rows.value, kIntoL2>(inputs, panels[panel], out_of_panel);
    });
  }
}

}  // namespace akunu::cpu
