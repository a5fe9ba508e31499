// The matmul kernel of a matrix unit (matmul.h says what a matmul kernel is).
//
// 1. What it computes. Weights become bf16; products of bf16 are summed in float32, in steps of 32
//    along k, in order. A row has the same bits alone, among 16 or 512.
// 2. What bounds it. The unit: 19 ns for a step of 32 x 32 x 32 products; then loading rows, and
//    writing results.
// 3. What is done about it. Two tiles of input rows times two panels of the weight have four tiles
//    of accumulators, so that each loaded tile is used twice. Loops, from the outside: parts of k,
//    pairs of panels, blocks of 32 input rows, which need no packing. A pair of unpacked panels
//    stays in L1, and the next one is unpacked meanwhile (pair_product.h).
// 4. What was tried and did not pay. Results stored after each pair (77 ns instead of 53) or past
//    the caches, all parts of a pair before the next pair (rows come from L3 each time),
//    prefetching rows of the next part, slices of 64, 128 and 512 columns. docs/decisions/prompts-on-the-cpu.md.
#pragma once

#include "cpu/kernels/matmul.h"
#include "cpu/kernels/tiles/pair_product.h"
#include "cpu/kernels/tiles/unpack.h"

namespace akunu::cpu {

constexpr uint32_t kTileColumns = 256;    // of slices that are multiplied at once
constexpr uint32_t kTileSliceRows = 512;  // of a slice: what an unpacked weight is used for
// Of a slice: a pair of panels. Narrow weights (1,024 rows) have work for 32 workers then.
constexpr uint32_t kPairColumns = 32;
// Lines of a row that a part of k takes: a pair of unpacked panels (32 KiB) stays in L1 while the
// rows stream past it, and the rows (512 KiB) stay in L2 for all pairs of a slice.
constexpr uint32_t kPartLines = 16;

// The panels of a slice, of one weight, or of two weights alternately.
template <class Isa, class Format>
struct TileSlice {
  using Tiles = typename Isa::Tiles;
  using Weights = TileWeights<Isa, Format>;
  using Input = typename Weights::Input;
  static constexpr uint32_t kPanel = Isa::Columns::kCount;
  static constexpr uint32_t kPanels = kTileColumns / kPanel;

  const std::byte* input;  // of the slice's first row
  uint64_t stride;
  uint32_t n_rows, k;
  uint32_t n_panels;
  Panel panels[kPanels];  // where each begins in its weight

  // Two pairs of unpacked panels, and the sums of all blocks.
  static constexpr uint64_t scratch_bytes() { return 2 * kPairBytes + kSumsBytes; }

  // store(p, r, first, second) receives the sums of row r and panels p and p + 1, 16 of each; null
  // where there is no second one. All pairs of a row follow each other: a pair at a time, in rows
  // that lie far apart, takes much longer.
  template <class Store>
  void multiply(std::byte* scratch, const Store& store) const {
    std::byte* const unpacked[] = {scratch, scratch + kPairBytes};
    std::byte* const sums = scratch + 2 * kPairBytes;
    const uint32_t n_stretches = n_pairs() * ((k + kPartWeights - 1) / kPartWeights);
    Tiles::configure(Tiles::kLines, Tiles::kLines);
    for (uint32_t i = 0; i < 2 && i < n_panels; ++i) unpack(stretch(0), i, unpacked[0], {});
    for (uint32_t number = 0; number < n_stretches; ++number) {
      const Stretch here = stretch(number);
      const PairOfPanels pair = pair_of(here, unpacked[number % 2], sums);
      Product product(pair);
      if (number + 1 < n_stretches) {
        const Stretch next = stretch(number + 1);
        const Stretch behind = stretch(number + 2 < n_stretches ? number + 2 : number + 1);
        for (uint32_t i = 0; i < 2 && next.panel + i < n_panels; ++i)
          unpack(next, i, unpacked[(number + 1) % 2], product.overlapped(panel_of(behind, i)));
      }
      product.finish();
      for (uint32_t block = pair.n_blocks; block < n_blocks(); ++block)
        multiply_rest(here, pair, block);
    }
    Tiles::release();
    store_all(sums, store);
  }

 private:
  static constexpr uint32_t kPartSteps = kPartLines / Weights::kInputs;
  static constexpr uint32_t kPartWeights = kPartSteps * kStep;
  static constexpr uint64_t kPanelBytes = kPartSteps * Weights::kWeights * Tiles::kTileBytes;
  static constexpr uint64_t kPairBytes = 2 * kPanelBytes;
  using Product = PairProduct<Isa, typename Weights::Terms, kPanelBytes>;
  static constexpr uint64_t kBlockBytes = Product::kBlockBytes;
  static constexpr uint64_t kSumsBytes = uint64_t{4} * kTileSliceRows * kTileColumns;

  // Weights [begin, begin + n) of panels `panel` and `panel` + 1.
  struct Stretch {
    uint32_t panel, begin, n;
  };

  uint32_t n_pairs() const { return (n_panels + 1) / 2; }
  uint32_t n_blocks() const { return (n_rows + kBlockRows - 1) / kBlockRows; }
  Stretch stretch(uint32_t number) const {
    const uint32_t begin = number / n_pairs() * kPartWeights;
    return {number % n_pairs() * 2, begin, k - begin < kPartWeights ? k - begin : kPartWeights};
  }

  // The i-th panel; of a pair that has no second one, the first.
  Panel panel_of(const Stretch& stretch, uint32_t i) const {
    const Panel& panel = panels[stretch.panel + (stretch.panel + i < n_panels ? i : 0)];
    return {panel.first + Format::row_bytes(stretch.begin), panel.stride};
  }
  void unpack(const Stretch& stretch, uint32_t i, std::byte* to,
              const OverlappedWork<Isa>& overlapped) const {
    Weights::unpack(panel_of(stretch, i), stretch.n, to + i * kPanelBytes, overlapped);
  }

  // With the blocks that are whole.
  PairOfPanels pair_of(const Stretch& stretch, const std::byte* unpacked, std::byte* sums) const {
    return {input + uint64_t{2} * Weights::kInputs * stretch.begin,
            stride,
            stretch.panel + 1 < n_panels ? n_rows / kBlockRows : 0,
            unpacked,
            (stretch.n + kStep - 1) / kStep,
            sums + sums_of(stretch.panel, 0),
            stretch.begin == 0};
  }
  uint64_t sums_of(uint32_t panel, uint32_t block) const {
    return (uint64_t{panel / 2} * n_blocks() + block) * kBlockBytes;
  }

  // Fewer rows than a block has, or a single panel.
  void multiply_rest(const Stretch& stretch, const PairOfPanels& pair, uint32_t block) const {
    const uint32_t first = block * kBlockRows;
    const uint32_t n = n_rows - first < kBlockRows ? n_rows - first : kBlockRows;
    Tiles::configure(n < Tiles::kLines ? n : Tiles::kLines,
                     n < Tiles::kLines ? 0 : n - Tiles::kLines);
    const TileSums sums = block_sums<Tiles>(pair.sums + block * kBlockBytes);
    multiply_block<Tiles, Weights::kInputs, Weights::kWeights>(
        {n > Tiles::kLines, stretch.panel + 1 < n_panels, pair.input + first * stride, stride,
         pair.panels, kPanelBytes, pair.n_steps, sums},
        pair.is_first ? nullptr : &sums);
    Tiles::configure(Tiles::kLines, Tiles::kLines);
  }

  template <class Store>
  void store_all(std::byte* all_sums, const Store& store) const {
    for (uint32_t r = 0; r < n_rows; ++r)
      for (uint32_t p = 0; p < n_panels; p += 2) {
        const TileSums sums = block_sums<Tiles>(all_sums + sums_of(p, r / kBlockRows));
        store(p, r, sums_line<Tiles>(sums, r % kBlockRows, 0),
              p + 1 < n_panels ? sums_line<Tiles>(sums, r % kBlockRows, 1) : nullptr);
      }
  }
};

template <class Isa, class Format>
struct TileMultiply {
  using Slice = TileSlice<Isa, Format>;
  using Tiles = typename Isa::Tiles;
  using Columns = typename Isa::Columns;
  using Input = typename Slice::Input;
  static constexpr int32_t kFormat = Format::kFormat, kKind = Input::kKind;
  static constexpr uint32_t kRows = kTileSliceRows, kAtOnce = kTileColumns / kPairColumns;
  static constexpr bool kRowByRow = true;
  static constexpr uint32_t kPanel = Slice::kPanel;
  static_assert(kPairColumns == 2 * kPanel);

  static uint32_t columns(uint32_t, uint32_t) { return kPairColumns; }
  static void prefetch(const MatmulMember&, const MatmulSlice&) {}  // a slice is long enough
  // With a weight that has fewer rows than a panel.
  static uint64_t scratch_bytes(uint32_t k) {
    return Slice::scratch_bytes() + kPanel * Format::row_bytes(k);
  }
  static uint64_t input_row_bytes(uint32_t k) { return Input::row_bytes(k); }

  static void run(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
                  std::byte* scratch) {
    const uint64_t stride = Input::row_bytes(member.k);
    const Panel weight = padded_panel<Format>(member, kPanel, scratch + Slice::scratch_bytes());
    Slice tiles{input + slice.first_row * stride, stride, slice.n_rows, member.k, 0, {}};
    PanelPlace places[Slice::kPanels];
    for (uint64_t j = slice.begin; j < slice.end; j += kPanel) {
      const PanelPlace place = place_panel(member.n, j, slice.end, kPanel);
      tiles.panels[tiles.n_panels] = {weight.first + place.from * weight.stride, weight.stride};
      places[tiles.n_panels++] = place;
    }
    tiles.multiply(scratch, [&](uint32_t p, uint32_t r, const float* first, const float* second) {
      store_line(member, slice.first_row + r, places[p], first);
      if (second != nullptr) store_line(member, slice.first_row + r, places[p + 1], second);
      if (p + 2 >= tiles.n_panels && member.row_done != nullptr)
        member.row_done(member.context, slice.first_row + r);
    });
  }

 private:
  static void store_line(const MatmulMember& member, uint64_t row, const PanelPlace& place,
                         const float* line) {
    const uint64_t j = place.from + place.skipped;
    if (place.n == kPanel)
      store_panel<Columns>(member, row, j, Columns::load(line));
    else
      store_results(member, row, j, line + place.skipped, place.n);
  }
};

}  // namespace akunu::cpu
