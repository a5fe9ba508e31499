// Row tiles: how input rows are held while they are multiplied with a panel of columns (panel.h),
// and what is multiplied at once. The micro-kernel (microkernel.h) is written once against these
// members.
//
// 1. What there is. DirectRowTile, below, for a few rows: codes are multiplied in the registers in
//    which they were decoded. PackedRowTile (row_tile_packed.h) for many: the panel was packed once
//    for all of them. MultiPanelRowTile (row_tile_multi_panel.h): rows times several panels side by
//    side. Int16RowTile (row_tile_int16.h): codes of 16 bits. isa/i8mm.h has one whose registers
//    hold two rows. row_tiles.h chooses.
// 2. What bounds it. One row: decoding, and memory. Many rows: the multipliers; with one panel it
//    would be the loads, since each product needs four bytes of a row.
// 3. What is done about it. What a row brings to every panel (the offset of codes times their sum,
//    the sums for minima) is computed once for a slice (`prepare`). Rows are interleaved product by
//    product (isa/dot_interleaved.h). All tiles do the same operations on a lane in the same order,
//    so the bits do not tell which was used.
// 4. What was tried. AVX-512: tiles of 5, 7 and 8 rows, three interleaved rows, eight direct rows
//    of super-blocks. docs/decisions/weights-and-formats-on-the-cpu.md has the numbers.
//
// Members of a row tile:
//   Registers               has the register types Ints and Floats
//   kRows                   input rows whose sums share a Floats; an Ints of codes has 4 * kRows
//                           codes of a column
//   kPanels                 panels whose sums share a Floats
//   kTileRows               input rows of a tile
//   kCodes<Format>          registers of a group's codes
//   kScaleForm<Format>      how a group has its scales
//   interleaved_rows(n)     how many of n packed rows are interleaved in a group's products
//   dot<kLargest, kRegisters>(sums, codes, x)
//                           sums[i] += codes . the codes at x[i]; also dot_signed, for signed codes
//   pack_group<Format>(group, panel, out)
//                           puts a decoded group of one panel into the packed one
//   pack_minima<Format>(of_group, panel, i, super_block)
//                           likewise the minima of a super-block's i-th group
//   pack_factor(of_group, panel, super_block)
//                           likewise the factor that its groups share
//   pack_rows<Format>(groups, out)
//                           packs a group of kRows input rows: kGroupBytes<Format> bytes
//   group<Format>(row, k, g)
//                           group g of a packed row
//   start<Format, kFirst, kCount>(group)
//                           where the dot product of eighths [kFirst, kFirst + kCount) of the group
//                           starts: minus the offset of the weights' codes times the sum of the
//                           input's (ScaleForm::pairs: as two int16)
//   row_scales(scale)       the input's scale in every lane
//   sum<Format>(group, i)   the sum of the input's codes that is multiplied with the group's i-th
//                           minimum, in every lane; in super-blocks times the input's scale
//   rows(sums)              sums of packed rows as sums of single rows
//   of_panel(sums, panel)   the sums of one panel
#pragma once

#include "cpu/kernels/column_group.h"
#include "cpu/kernels/formats.h"
#include "cpu/kernels/input_rows.h"

namespace akunu::cpu {

template <class Number>
static inline void store_number(std::byte* p, Number number) {
  __builtin_memcpy(p, &number, sizeof(number));
}

template <class Columns>
struct DirectRowTile : Columns {
  using typename Columns::Floats;
  using typename Columns::Ints;
  using Registers = Columns;
  static constexpr uint32_t kRows = 1, kPanels = 1, kTileRows = Columns::Policy::kTileRows;
  static constexpr uint32_t interleaved_rows(uint32_t n) {
    return n % Columns::Policy::kInterleavedRows == 0 ? Columns::Policy::kInterleavedRows : 1;
  }
  template <class>
  static constexpr uint32_t kCodes = 8;
  template <class>
  static constexpr ScaleForm kScaleForm = ScaleForm::floats;
  template <class Format>
  static constexpr uint32_t kOffset =
      Format::kSigned ? Columns::Policy::kSignedOffset : Format::kOffset;

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

  // What `prepare` computes for each group of a row, once for all panels: the values at which its
  // dot products start, which take back the offset of codes, and the sums of codes that are
  // multiplied with minima.
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

  // Group g of a row; `group` with what `prepare` computed.
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
  // For a single row, behind the prepared groups: the first four of every kRotation codes, rotated.
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

}  // namespace akunu::cpu
