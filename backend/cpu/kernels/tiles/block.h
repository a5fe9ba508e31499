// The innermost product of a matrix unit: one or two tiles of input rows times one or two panels.
#pragma once

#include "cpu/kernels/tiles/unpack.h"

namespace akunu::cpu {

constexpr uint32_t kBlockRows = 32;  // two tiles

// Where the sums of a block go, or come from: `row_tile` bytes from one tile of rows to the next,
// `panel` from one panel to the next, `line` from row to row.
struct TileSums {
  std::byte* first;
  uint64_t row_tile, panel, line;
};

// R tiles of input rows times P panels: sums in tiles 0 to 3 (row tile r, panel p: 2 r + p). Where the
// input is sums of kInputs numbers, a line of the first ones is followed by one of the second ones;
// likewise kWeights and tiles of a panel. Products of two second ones are left out.
template <class Tiles, uint32_t R, uint32_t P, uint32_t kInputs, uint32_t kWeights>
struct TileBlock {
  // `from`: the sums so far, null where there are none.
  static void multiply(const std::byte* input, uint64_t stride, const std::byte* panels,
                       uint64_t panel_bytes, uint32_t n_steps, const TileSums* from,
                       const TileSums& to) {
    if (from == nullptr)
      for_each_sum([](auto tile, std::byte*) { Tiles::template zero<tile.value>(); }, to);
    else
      for_each_sum(
          [&](auto tile, std::byte* p) { Tiles::template load<tile.value>(p, from->line); }, *from);
    const std::byte* second = panels + panel_bytes;
    for (uint32_t step = 0; step < n_steps; ++step) {
      if constexpr (kInputs == 2) {
        products<true, true>(input + Tiles::kLineBytes, stride, panels, second);
        products<true, false>(input, stride, panels, second);
      } else {
        products<true, true>(input, stride, panels, second);
      }
      if constexpr (kWeights == 2)
        products<false, true>(input, stride, panels + Tiles::kTileBytes,
                              second + Tiles::kTileBytes);
      input += kInputs * Tiles::kLineBytes;
      panels += kWeights * Tiles::kTileBytes;
      second += kWeights * Tiles::kTileBytes;
    }
    for_each_sum([&](auto tile, std::byte* p) { Tiles::template store<tile.value>(p, to.line); },
                 to);
  }

 private:
  // With those of input and panels loaded that are not in their registers yet.
  template <bool kLoadInput, bool kLoadPanels>
  static void products(const std::byte* input, uint64_t stride, const std::byte* first,
                       const std::byte* second) {
    if constexpr (kLoadPanels) Tiles::template load_once<6>(first, Tiles::kLineBytes);
    if constexpr (kLoadInput) Tiles::template load<4>(input, stride);
    Tiles::template multiply<0, 4, 6>();
    if constexpr (P == 2) {
      if constexpr (kLoadPanels) Tiles::template load_once<7>(second, Tiles::kLineBytes);
      Tiles::template multiply<1, 4, 7>();
    }
    if constexpr (R == 2) {
      if constexpr (kLoadInput) Tiles::template load<5>(input + Tiles::kLines * stride, stride);
      Tiles::template multiply<2, 5, 6>();
      if constexpr (P == 2) Tiles::template multiply<3, 5, 7>();
    }
  }

  template <class Use>
  static void for_each_sum(const Use& use, const TileSums& sums) {
    use(Constant<0>{}, sums.first);
    if constexpr (P == 2) use(Constant<1>{}, sums.first + sums.panel);
    if constexpr (R == 2) use(Constant<2>{}, sums.first + sums.row_tile);
    if constexpr (R == 2 && P == 2) use(Constant<3>{}, sums.first + sums.row_tile + sums.panel);
  }
};

template <class Tiles, uint32_t kInputs, uint32_t kWeights>
static inline void multiply_block(bool two_rows, bool two_panels, const std::byte* rows,
                                  uint64_t stride, const std::byte* panels, uint64_t panel_bytes,
                                  uint32_t n_steps, const TileSums* from, const TileSums& to) {
  const auto multiply = [&](auto block) {
    block.multiply(rows, stride, panels, panel_bytes, n_steps, from, to);
  };
  if (two_rows && two_panels) return multiply(TileBlock<Tiles, 2, 2, kInputs, kWeights>{});
  if (two_rows) return multiply(TileBlock<Tiles, 2, 1, kInputs, kWeights>{});
  if (two_panels) return multiply(TileBlock<Tiles, 1, 2, kInputs, kWeights>{});
  multiply(TileBlock<Tiles, 1, 1, kInputs, kWeights>{});
}

}  // namespace akunu::cpu
