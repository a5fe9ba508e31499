// Tiling of quantised matmuls: the input rows of a slice times a few panels.
//
// 1. What it does. A few rows go through direct tiles, panel by panel. More rows: up to kPanels
//    panels are packed, then all row tiles go past them.
// 2. What bounds it. A few rows: memory. Many: the multipliers.
// 3. What is done about it. A few rows: the next panel is prefetched, into L1 where it fits, and a
//    single row takes panels that do not in halves. Many: a packed panel stays in L1 or L2 for all
//    tiles of the slice; while they are multiplied, the next panels are prefetched.
// 4. What was tried and did not pay. Prefetching while panels are packed (12 rows from memory 0.8),
//    128 or 256 rows a slice, copying the next panel to L1. docs/decisions/prefetching-on-the-cpu.md, weights-and-formats-on-the-cpu.md.
#pragma once

#include <type_traits>

#include "cpu/kernels/microkernel.h"
#include "cpu/kernels/packed_panel.h"

namespace akunu::cpu {

struct GroupRange {
  uint32_t begin, end;
};

// How rows are divided into tiles: whole ones of kRows, then tiles of kRest. The last whole tile is
// split where that leaves fewer places unused: 7 or 8 rows are two tiles of 4, 9 are one of 6 and
// one of 4.
template <class RowTile>
struct Tiles {
  static constexpr uint32_t kRows = RowTile::kTileRows, kRest = kRows < 4 ? kRows : 4;

  static constexpr uint32_t in_rests(uint32_t n) { return (n + kRest - 1) / kRest; }
  // How many tiles of kRows come first.
  static constexpr uint32_t whole(uint32_t n) {
    const uint32_t tiles = n / kRows, left = n % kRows;
    const bool apart = tiles > 0 && in_rests(kRows + left) * kRest < kRows + in_rests(left) * kRest;
    return apart ? tiles - 1 : tiles;
  }
  static constexpr uint32_t count(uint32_t n) { return whole(n) + in_rests(n - whole(n) * kRows); }
};

// Input rows (packed by pack_rows) times groups [range) of packed panels; out(panel, row, sums)
// receives the results.
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
    multiply_groups<Format, Packed, kTile, Rows::many>(inputs, first, kTile, from_groups, out);
  for (; first < inputs.n; first += kRest) {
    const uint32_t left = inputs.n - first;
    multiply_groups<Format, Packed, kRest, Rows::many>(inputs, first, left < kRest ? left : kRest,
                                                       from_groups, out);
  }
}

// A direct tile of kRows rows times a panel. A function for each number of rows: in a single one
// for all of them registers spill.
template <class Isa, class Format, uint32_t kRows, int kInto, class OfWeight, class Out>
#ifndef __SANITIZE_ADDRESS__
[[gnu::flatten]]
#endif
[[gnu::noinline]] static void multiply_few(const InputRows& inputs, const OfWeight& weight,
                                           const Out& out) {
  const PrefetchingPanel<kInto, kRows <= 2, OfWeight> panel{weight};
  multiply_groups<Format, typename RowTilesFor<Isa, Format>::Direct, kRows, Rows::few>(
      inputs, 0, inputs.n,
      [&](const auto& use, const auto& close) {
        PanelGroups<Isa, Format>::template for_each_group<kRows>(panel, inputs.k, use, close);
      },
      out);
}

// A format, decoded with another level's primitives.
template <class Format, class Isa>
struct AtLevel;
template <template <class> class Format, class From, class Isa>
struct AtLevel<Format<From>, Isa> {
  using type = Format<Isa>;
};

// A single row times half a panel, then times the other half, in registers of half the width
// (Isa::HalfWidth). For panels that are too large for L1: 0.83 of the speed in cache, up to 1.2
// times as fast from memory.
template <class Isa, class Format, class Out>
static inline void multiply_half_panels(const InputRows& inputs, const Panel& weight,
                                        const Out& out) {
  using HalfWidth = typename Isa::HalfWidth;
  using HalfWidthFormat = typename AtLevel<Format, HalfWidth>::type;
  typename HalfWidth::Columns::Floats sums[2];
  for (uint32_t half = 0; half < 2; ++half)
    multiply_few<HalfWidth, HalfWidthFormat, 1, kIntoL1>(
        inputs, panel_from(weight, half * HalfWidth::Columns::kCount),
        [&](uint32_t, uint32_t, auto of_half) { sums[half] = of_half; });
  out(0, 0, Isa::Columns::join_halves(sums[0], sums[1]));
}

// Calls use(Constant<the first of kRows, kMore... that is no smaller than n>{}); none of them is
// larger than kFewRows.
template <uint32_t kFewRows, uint32_t kRows, uint32_t... kMore>
static inline void with_few_rows(uint32_t n, const auto& use) {
  if constexpr (kRows >= kFewRows)
    use(Constant<kFewRows>{});
  else if (n <= kRows)
    use(Constant<kRows>{});
  else
    with_few_rows<kFewRows, kMore...>(n, use);
}

// All input rows of a slice (packed by pack_rows) times up to kPanels panels. `room`:
// packed_panel_bytes, aligned to 64.
template <class Isa, class Format, class OfWeight, class Out>
#ifndef __SANITIZE_ADDRESS__
[[gnu::flatten]]
#endif
static inline void multiply_panels(
    const InputRows& inputs, const OfWeight (&panels)[RowTilesFor<Isa, Format>::Packed::kPanels],
    uint32_t n_panels, uint64_t l1_panel_bytes, std::byte* room, const Out& out) {
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
  // Super-blocks of fewer than four bits a weight are bound by decoding, not by memory: they may
  // take half as much again of L1, and half panels cost them more than they gain
  // (docs/decisions/prefetching-on-the-cpu.md).
  constexpr bool kComputeBound = Format::kSuperBlock && Format::row_bytes(256) < 128;
  constexpr bool kHalfPanels =
      !kComputeBound && std::is_same_v<typename Format::Input, QuantInput<Isa>>;
  for (uint32_t panel = 0; panel < n_panels; ++panel) {
    const auto out_of_panel = [&](uint32_t, uint32_t row, auto sums) { out(panel, row, sums); };
    with_few_rows<kFewRows, 1, 2, 4, 6, 8>(inputs.n, [&](auto rows) {
      const uint64_t bytes = Isa::Columns::kCount * panels[panel].stride;
      if constexpr (rows.value <= (kComputeBound ? 1 : 2) &&
                    Isa::Columns::Policy::kPrefetchesIntoL1)
        if ((kComputeBound ? bytes - bytes / 3 : bytes) <= l1_panel_bytes)
          return multiply_few<Isa, Format, rows.value, kIntoL1>(inputs, panels[panel],
                                                                out_of_panel);
      if constexpr (kHalfPanels && rows.value == 1 && Isa::Columns::Policy::kHalfWidth)
        if (bytes / 2 <= l1_panel_bytes)
          return multiply_half_panels<Isa, Format>(inputs, panels[panel], out_of_panel);
      multiply_few<Isa, Format, rows.value, kIntoL2>(inputs, panels[panel], out_of_panel);
    });
  }
}

}  // namespace akunu::cpu
