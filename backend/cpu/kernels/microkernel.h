// The micro-kernel of quantised matmuls: a row tile times a panel, group by group along k. panel.h
// has the arithmetic.
//
// 1. What it computes. For every group: dot products of whole numbers, exact; then one to three
//    float operations into the accumulators of the tile's rows.
// 2. What bounds it. Many rows: the multipliers, and registers: accumulators, dot products, codes
//    and four bytes of a row have to fit 16 or 32. A few rows: decoding, and memory.
// 3. What the loop does about it. The group is in registers, rows stream past it. Rows are
//    interleaved product by product, so that each loaded register is used by all of them. The
//    number of rows is a constant, and pragmas unroll what has to stay in registers.
// 4. What was tried and did not pay. Row counts known at run time only (2 % of a prompt), four
//    chains of dot products for one row instead of two, minima of direct tiles at the end of a
//    super-block. docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/kernels/panel.h"
#include "cpu/kernels/row_tiles.h"

namespace akunu::cpu {

template <class Format>
struct Microkernel {
  // sums[r] += input row r . panel, for the group g, for R packed rows.
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

  // sums[r] += the minima of group g times the sums of row r's codes.
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

  // t[i] = the dot products of a group with row i, times the group's scales.
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

  // dots[i] = eighths [kFirst, kFirst + kCount) of a group . row i, less the offset of the codes.
  // The codes of the upper half may be kUpperFactor times too large.
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
  // sums[i] += the kDot-th part of the group . row i, times its scale. ScaleForm::pairs.
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
};

// A direct tile or a packed one. They differ in when the minima of super-blocks are added. At the
// end of a super-block those are 8 or 16 dependent additions, longer than an out-of-order window: a
// direct tile adds them with each group instead. A packed tile interleaves its rows at the end, and
// has no registers for a second accumulator a row before.
enum class Rows { few, many };

// Input rows [first, first + n), in a tile of kRows, times a panel. for_each(use, close) calls them
// with the panel's groups, as PanelGroups::for_each_group does; out(panel, row, sums) receives the
// results.
template <class Format, class RowTile, uint32_t kRows, Rows kAre>
static inline void multiply_groups(const InputRows& inputs, uint32_t first, uint32_t n,
                                   const auto& for_each, const auto& out) {
  constexpr uint32_t R = kRows / RowTile::kRows;
  typename RowTile::Floats sums[R];  // the pragma keeps them in registers
#pragma GCC unroll 16
  for (auto& sum : sums) sum = RowTile::zero();
  const InputRows rows{inputs.first + first / RowTile::kRows * inputs.stride,
                       inputs.stride,
                       inputs.k,
                       (n + RowTile::kRows - 1) / RowTile::kRows,
                       inputs.prepared + first * inputs.prepared_stride,
                       inputs.prepared_stride};
  using Micro = Microkernel<Format>;
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
          Micro::template accumulate<RowTile, R, kFewRows>(group, g, rows, of_block);
          if constexpr (Format::kHasMinimum && kAre == Rows::few)
            Micro::template add_minima<RowTile, R>(of_group.minima, g, rows, sums);
        },
        [&](const auto& block, uint32_t g) {
          if constexpr (Format::kHasMinimum && kAre == Rows::many)
            for (uint32_t i = 0; i < Format::kGroups; ++i)
              Micro::template add_minima<RowTile, R>(block.minima + Format::kDots * i, g + i, rows,
                                                     sums);
#pragma GCC unroll 16
          for (uint32_t r = 0; r < R; ++r)
            sums[r] = RowTile::multiply_add(of_block[r], block.factor, sums[r]);
          begin();
        });
  } else {
    for_each(
        [&](const auto& group, uint32_t g, const auto&) {
          Micro::template accumulate<RowTile, R, kFewRows>(group, g, rows, sums);
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

}  // namespace akunu::cpu
