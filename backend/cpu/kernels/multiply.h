// The matmul kernels of vector levels (matmul.h says what a matmul kernel is).
//
// 1. What they compute. Weights of floats: tiles of input rows x weight rows, lanes along k
//    (matmul_tile.h; many rows: float_panel.h). Weights that are codes: columns in lanes (panel.h,
//    multiply_panels.h).
// 2. What bounds them. A few rows: memory. Many: the multipliers.
// 3. What is done about it. The weights of a slice (kSliceBytes) fit L2, and all input rows of the
//    slice use them there.
// 4. What was tried and did not pay. Slices of 24, 40 and 48 KiB (0.95 to 0.98 of whole tokens), of
//    32 columns, input rows packed once for several slices. docs/decisions/prefetching-on-the-cpu.md.
#pragma once

#include "cpu/kernels/float_panel.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/matmul_tile.h"
#include "cpu/kernels/multiply_panels.h"

namespace akunu::cpu {

constexpr uint64_t kSliceBytes = 96 * 1024;  // a few microseconds of reading, and much less than L2
constexpr uint32_t kMaxSliceColumns = 192;
constexpr uint32_t kSliceRows = 64;
constexpr uint32_t kInt16SliceRows =
    256;  // of weights that are rounded to int16 when they are packed
constexpr uint32_t kPromptColumns = 48;  // of floats: 12 made the matmul of k = 3072 a third slower

// What a slice takes of a weight, in whole tiles of `step` rows.
static inline uint32_t slice_columns(uint64_t row_bytes, uint32_t step) {
  const uint64_t fit = kSliceBytes / (row_bytes + 1) / step * step;
  return static_cast<uint32_t>(fit < step ? step : fit > kMaxSliceColumns ? kMaxSliceColumns : fit);
}

// Weights of floats: register tiles of input rows x weight rows, lanes along k.
template <class Isa, class Format, class Input = typename Format::Input>
struct Multiply : OneSliceAtOnce {
  static constexpr int32_t kFormat = Format::kFormat, kKind = Input::kKind;
  static constexpr uint32_t kRows = 2 * kSliceRows;
  static constexpr uint32_t kFewRows =
      8;  // up to so many rows read the weights directly, without packing
  using Panel = FloatPanel<Isa, Format>;
  // A prompt's slice reads its input from L3 or memory: more columns reuse it.
  static uint32_t columns(uint32_t k, uint32_t n_rows) {
    const uint32_t fit = slice_columns(Format::row_bytes(k), kPanelColumns);
    return n_rows < kSliceRows || fit > kPromptColumns ? fit : kPromptColumns;
  }
  static constexpr uint64_t scratch_bytes(uint32_t) { return Panel::scratch_bytes(kRows); }
  static uint64_t input_row_bytes(uint32_t k) { return Input::row_bytes(k); }
  static void prefetch(const MatmulMember&, const MatmulSlice&) {
  }  // hardware prefetches whole rows

  static void run(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
                  std::byte* scratch) {
    const auto [first_row, n_inputs, begin, end] = slice;
    typename Input::Row inputs[kRows];
    const uint64_t stride = Input::row_bytes(member.k);
    for (uint32_t r = 0; r < n_inputs; ++r)
      inputs[r] = Input::row(input + (first_row + r) * stride, member.k);
    const uint64_t row_bytes = Format::row_bytes(member.k);
    const uint32_t last = static_cast<uint32_t>(end);
    uint32_t j = static_cast<uint32_t>(begin);
    const std::byte* rows_behind = member.weight + Isa::kSingleRowColumns * row_bytes;
    if (n_inputs <= kFewRows)
      return multiply_panel<Isa, Format>(
          inputs, n_inputs, member.weight, row_bytes, j, last, member.k, rows_behind,
          [&](uint32_t r, uint32_t c, const float* sums, uint32_t n) {
            store_results(member, slice.first_row + r, c, sums, n);
          });
    for (; j < last; j += kPanelColumns)
      Panel::multiply(inputs, n_inputs, member.weight, row_bytes, j,
                      last - j < kPanelColumns ? last : j + kPanelColumns, member.k, scratch,
                      [&](uint32_t r, const float* sums, uint32_t n) {
                        store_results(member, slice.first_row + r, j, sums, n);
                      });
  }
};

// Weights that are codes, or are rounded to codes: panels of columns, see panel.h.
template <class Isa, class Format, uint32_t kRows_>
struct MultiplyPanels : OneSliceAtOnce {
  using Columns = typename Isa::Columns;
  using Input = typename Format::Input;
  using Packed = typename RowTilesFor<Isa, Format>::Packed;
  static constexpr int32_t kFormat = Format::kFormat, kKind = Input::kKind;
  static constexpr uint32_t kRows = kRows_;
  static constexpr uint32_t kColumnStep = Columns::kCount, kPanels = Packed::kPanels;
  // Whole groups of 32: a slice of gated_matmul writes those.
  static uint32_t columns(uint32_t k, uint32_t) { return slice_columns(Format::row_bytes(k), 32); }
  // The first panel of a slice, and the lead of its prefetches: later panels are prefetched by the
  // panel before.
  static void prefetch(const MatmulMember& member, const MatmulSlice& slice) {
    const uint64_t row_bytes = Format::row_bytes(member.k);
    prefetch_lines<kIntoL2>(member.weight + slice.begin * row_bytes,
                            prefetch_distance<kIntoL2>(kColumnStep, row_bytes));
  }
  // Packed input rows, packed panels, and a padded copy of a weight that has fewer rows than a panel.
  static constexpr uint64_t scratch_bytes(uint32_t k) {
    return packed_rows_bytes(k) + packed_panels_bytes(k) + kColumnStep * Format::row_bytes(k);
  }
  static uint64_t input_row_bytes(uint32_t k) { return Input::row_bytes(k); }

  static void run(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
                  std::byte* scratch) {
    std::byte* const room = scratch + packed_rows_bytes(member.k) + packed_panels_bytes(member.k);
    run(member, padded_panel<Format>(member, kColumnStep, room), input, slice, scratch);
  }

 protected:
  // `weight`: the weight's rows, no fewer than a panel has.
  static void run(const MatmulMember& member, const auto& weight, const std::byte* input,
                  const MatmulSlice& slice, std::byte* scratch) {
    const uint64_t stride = Input::row_bytes(member.k);
    const InputRows inputs = pack_rows<Isa, Format>(
        {input + slice.first_row * stride, stride, Input::whole(member.k), slice.n_rows}, scratch);
    scratch += packed_rows_bytes(member.k);
    for (uint64_t j = slice.begin; j < slice.end;) {
      PanelPlace places[kPanels];
      std::remove_cvref_t<decltype(weight)> panels[kPanels];
      uint32_t n_panels = 0;
      for (; n_panels < kPanels && j < slice.end; ++n_panels, j += kColumnStep) {
        const PanelPlace place = place_panel(member.n, j, slice.end, kColumnStep);
        places[n_panels] = place;
        panels[n_panels] = panel_from(weight, place.from);
      }
      multiply_panels<Isa, Format>(
          inputs, panels, n_panels, member.l1_panel_bytes, scratch,
          [&](uint32_t p, uint32_t r, typename Columns::Floats sums) {
            const PanelPlace& place = places[p];
            const uint64_t row = slice.first_row + r, column = place.from + place.skipped;
            if (place.n == kColumnStep) return store_panel<Columns>(member, row, column, sums);
            float lanes[kColumnStep];
            Columns::store(lanes, sums);
            store_results(member, row, column, lanes + place.skipped, place.n);
          });
    }
  }

  // For many rows; few rows, or one, need less.
  static constexpr uint64_t packed_rows_bytes(uint32_t k) {
    using RowTile = RowTilesFor<Isa, Format>;
    using Direct = typename RowTile::Direct;
    constexpr uint64_t kMany = packed_row_bytes<Packed, Format>(kRows, 256);
    static_assert(packed_row_bytes<Direct, Format>(few_rows<RowTile, Format>(), 256) <= kMany);
    static_assert(packed_row_bytes<Direct, Format>(1, 256) +
                      Direct::template rotated_bytes<Format>(8) <=
                  kMany);
    return packed_row_bytes<Packed, Format>(kRows, Input::whole(k));
  }
  static constexpr uint64_t packed_panels_bytes(uint32_t k) {
    return packed_panel_bytes<Isa, Format>(Input::whole(k));
  }
};
template <class Isa, class Format>
struct Multiply<Isa, Format, QuantInput<Isa>> : MultiplyPanels<Isa, Format, kSliceRows> {};
template <class Isa, class Format>
struct Multiply<Isa, Format, TwoByteInput<Isa>> : MultiplyPanels<Isa, Format, kSliceRows> {};
template <class Isa, class Format>
struct Multiply<Isa, Format, Quant16Input<Isa>> : MultiplyPanels<Isa, Format, kInt16SliceRows> {};

}  // namespace akunu::cpu
