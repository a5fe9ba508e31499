// The micro-kernel of a matrix unit: one or two tiles of input rows times one or two panels.
//
// 1. What it computes. Four tiles of accumulators += rows . panels, a step of 32 along k at a time;
//    with operands that are sums of two bf16 numbers, two or three products a step.
// 2. What bounds it. The unit; each loaded tile is used twice.
// 3. What is done about it. What streams past is loaded with the hint that it is not used again
//    soon (Streamed), so that the other operand stays in L1.
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

// Of a block, four tiles one after the other.
template <class Tiles>
static inline TileSums block_sums(std::byte* first) {
  return {first, 2 * Tiles::kTileBytes, Tiles::kTileBytes, Tiles::kLineBytes};
}
// Row r of one panel's.
template <class Tiles>
static inline const float* sums_line(const TileSums& sums, uint32_t r, uint32_t panel) {
  return reinterpret_cast<const float*>(sums.first + panel * sums.panel +
                                        r / Tiles::kLines * sums.row_tile +
                                        r % Tiles::kLines * sums.line);
}

// What goes past the other, which stays in L1: its loads say so.
enum class Streamed { panels, input };

// R tiles of input rows times P panels: sums in tiles 0 to 3 (row tile r, panel p: 2 r + p). Where the
// input is sums of kInputs numbers, a line of the first ones is followed by one of the second ones;
// likewise kWeights and tiles of a panel. Products of two second ones are left out.
template <class Tiles, uint32_t R, uint32_t P, uint32_t kInputs, uint32_t kWeights,
          Streamed kStreamed = Streamed::panels>
struct TileBlock {
  static void zero() {
    for_each_sum([](auto tile, std::byte*) { Tiles::template zero<tile.value>(); }, {});
  }
  static void load(const TileSums& from) {
    for_each_sum([&](auto tile, std::byte* p) { Tiles::template load<tile.value>(p, from.line); },
                 from);
  }
  [[gnu::always_inline]] static void multiply(const std::byte* input, uint64_t stride,
                                              const std::byte* panels, uint64_t panel_bytes,
                                              uint32_t n_steps) {
    for (uint32_t step = 0; step < n_steps; ++step) {
      first_rows(input, stride, panels, panels + panel_bytes);
      if constexpr (R == 2) second_rows(input, stride, panels, panels + panel_bytes);
      input += kInputs * Tiles::kLineBytes;
      panels += kWeights * Tiles::kTileBytes;
    }
  }
  // One step, the first tile of rows. The second one finds the panels in registers where they are
  // one tile each.
  [[gnu::always_inline]] static void first_rows(const std::byte* input, uint64_t stride,
                                                const std::byte* first, const std::byte* second) {
    row_tile<0, true>(input, stride, first, second);
  }
  [[gnu::always_inline]] static void second_rows(const std::byte* input, uint64_t stride,
                                                 const std::byte* first, const std::byte* second) {
    row_tile<1, (kWeights > 1)>(input + Tiles::kLines * stride, stride, first, second);
  }
  static void store(const TileSums& to) {
    for_each_sum([&](auto tile, std::byte* p) { Tiles::template store<tile.value>(p, to.line); },
                 to);
  }

 private:
  // Row tile r of a step: the products of its second numbers with the panels' first ones, of both first ones,
  // and of its first with the panels' second ones.
  template <uint32_t r, bool kLoadPanels>
  [[gnu::always_inline]] static void row_tile(const std::byte* input, uint64_t stride,
                                              const std::byte* first, const std::byte* second) {
    if constexpr (kInputs == 2) {
      products<r, kLoadPanels>(input + Tiles::kLineBytes, stride, first, second);
      products<r, false>(input, stride, first, second);
    } else {
      products<r, kLoadPanels>(input, stride, first, second);
    }
    if constexpr (kWeights == 2) {
      load_panel<6>(first + Tiles::kTileBytes);
      Tiles::template multiply<2 * r, 4 + r, 6>();
      if constexpr (P == 2) {
        load_panel<7>(second + Tiles::kTileBytes);
        Tiles::template multiply<2 * r + 1, 4 + r, 7>();
      }
    }
  }
  template <uint32_t r, bool kLoadPanels>
  [[gnu::always_inline]] static void products(const std::byte* input, uint64_t stride,
                                              const std::byte* first, const std::byte* second) {
    if constexpr (kLoadPanels) load_panel<6>(first);
    load_input<4 + r>(input, stride);
    Tiles::template multiply<2 * r, 4 + r, 6>();
    if constexpr (P == 2) {
      if constexpr (kLoadPanels) load_panel<7>(second);
      Tiles::template multiply<2 * r + 1, 4 + r, 7>();
    }
  }
  template <uint32_t kTile>
  static void load_panel(const std::byte* p) {
    if constexpr (kStreamed == Streamed::panels)
      Tiles::template load_once<kTile>(p, Tiles::kLineBytes);
    else
      Tiles::template load<kTile>(p, Tiles::kLineBytes);
  }
  template <uint32_t kTile>
  static void load_input(const std::byte* p, uint64_t stride) {
    if constexpr (kStreamed == Streamed::input)
      Tiles::template load_once<kTile>(p, stride);
    else
      Tiles::template load<kTile>(p, stride);
  }

  template <class Use>
  static void for_each_sum(const Use& use, const TileSums& sums) {
    use(Constant<0>{}, sums.first);
    if constexpr (P == 2) use(Constant<1>{}, sums.first + sums.panel);
    if constexpr (R == 2) use(Constant<2>{}, sums.first + sums.row_tile);
    if constexpr (R == 2 && P == 2) use(Constant<3>{}, sums.first + sums.row_tile + sums.panel);
  }
};

// One block's product.
struct BlockProduct {
  bool two_rows, two_panels;
  const std::byte* rows;
  uint64_t stride;
  const std::byte* panels;
  uint64_t panel_bytes;
  uint32_t n_steps;
  TileSums to;
};
// Calls use(the TileBlock for it).
template <class Tiles, uint32_t kInputs, uint32_t kWeights, class Use>
static inline void with_block(const BlockProduct& product, const Use& use) {
  if (product.two_rows && product.two_panels)
    return use(TileBlock<Tiles, 2, 2, kInputs, kWeights>{});
  if (product.two_rows) return use(TileBlock<Tiles, 2, 1, kInputs, kWeights>{});
  if (product.two_panels) return use(TileBlock<Tiles, 1, 2, kInputs, kWeights>{});
  use(TileBlock<Tiles, 1, 1, kInputs, kWeights>{});
}

// `from`: the sums so far, null where there are none.
template <class Tiles, uint32_t kInputs, uint32_t kWeights>
static inline void multiply_block(const BlockProduct& product, const TileSums* from) {
  with_block<Tiles, kInputs, kWeights>(product, [&](auto block) {
    if (from == nullptr)
      block.zero();
    else
      block.load(*from);
    block.multiply(product.rows, product.stride, product.panels, product.panel_bytes,
                   product.n_steps);
    block.store(product.to);
  });
}

// Products one after the other, a step at a time, so that the caller can put vector instructions
// between the steps. The processor issues nothing behind a tile instruction that waits for those
// before it: with more than a step at once, vectors would wait for the matrix unit. Accumulators
// are stored when the next product begins, or by `end`.
template <class Tiles, uint32_t kInputs, uint32_t kWeights>
struct BlockSequence {
  BlockProduct product = {};

  void begin(const BlockProduct& next) {
    end();
    product = next;
    with_block<Tiles, kInputs, kWeights>(product, [](auto block) { block.zero(); });
  }
  void step() {
    with_block<Tiles, kInputs, kWeights>(product, [&](auto block) {
      block.multiply(product.rows, product.stride, product.panels, product.panel_bytes, 1);
    });
    product.rows += kInputs * Tiles::kLineBytes;
    product.panels += kWeights * Tiles::kTileBytes;
    --product.n_steps;
  }
  void end() {
    if (product.to.first == nullptr) return;  // nothing began
    with_block<Tiles, kInputs, kWeights>(product, [&](auto block) { block.store(product.to); });
    product = {};
  }
};

}  // namespace akunu::cpu
