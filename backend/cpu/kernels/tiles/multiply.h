// The way in which a matrix unit multiplies a weight (matmul.h says what a way is).
//
// The input's rows are in bf16 and taken as they lie. Two tiles of input rows times two panels of the
// weight keep four tiles of sums in registers, so that each loaded tile is used twice. A slice goes
// through k in parts. Of each it unpacks all its panels, and then takes the input's rows, 32 at a
// time, past them.
//
// Steps of 32 along k are summed in order, whatever rows are beside: a row has the same bits alone,
// among 16 or 512.
#pragma once

#include "cpu/kernels/matmul.h"
#include "cpu/kernels/tiles/block.h"
#include "cpu/kernels/tiles/unpack.h"

namespace akunu::cpu {

constexpr uint32_t kTileColumns = 256;    // of a slice
constexpr uint32_t kTileSliceRows = 512;  // of a slice: what an unpacked weight is used for
// Lines of a row that a part of k takes: 32 rows (32 KiB) stay in the first cache while the unpacked
// panels (256 KiB) go by, and those in the second, for all rows.
constexpr uint32_t kPartLines = 16;

// The panels of a slice, of one weight or of two that take turns.
template <class Isa, class Format>
struct TileSlice {
  using Tiles = typename Isa::Tiles;
  using Weights = TileWeights<Isa, Format>;
  using Input = typename Weights::Input;
  static constexpr uint32_t kPanel = Isa::Columns::kCount;
  static constexpr uint32_t kPanels = kTileColumns / kPanel;
  static constexpr uint32_t kPartSteps = kPartLines / Weights::kInputs;
  static constexpr uint64_t kPanelBytes = kPartSteps * Weights::kWeights * Tiles::kTileBytes;
  static constexpr uint64_t kBlockBytes = 4 * Tiles::kTileBytes;
  static constexpr uint64_t kSumsBytes = uint64_t{4} * kTileSliceRows * kTileColumns;

  const std::byte* input;  // of the slice's first row
  uint64_t stride;
  uint32_t n_rows, k;
  uint32_t n_panels;
  Panel panels[kPanels];  // where each begins in its weight

  // The unpacked panels, sums of all blocks.
  static constexpr uint64_t scratch_bytes() { return kPanels * kPanelBytes + kSumsBytes; }

  // place(r, p): where the sums of panels p and p + 1, rows from r on, go in the end, or null where
  // that is put's business: put(r, n_rows, p, sums), called for these when they are complete.
  template <class Place, class Put>
  void multiply(std::byte* scratch, const Place& place, const Put& put) const {
    std::byte* const all_sums = scratch + kPanels * kPanelBytes;
    Tiles::configure(Tiles::kLines, Tiles::kLines);
    for (uint32_t begin = 0, n = 0; begin < k; begin += n) {
      n = k - begin < kPartSteps * kStep ? k - begin : kPartSteps * kStep;
      for (uint32_t p = 0; p < n_panels; ++p) {
        if (p + 1 < n_panels) ask_for(panels[p + 1], begin, n);
        Weights::unpack({panels[p].first + Format::row_bytes(begin), panels[p].stride}, n,
                        scratch + p * kPanelBytes);
      }
      TileSums sums{all_sums, 2 * Tiles::kTileBytes, Tiles::kTileBytes, Tiles::kLineBytes};
      for (uint32_t r = 0; r < n_rows; r += kBlockRows) {
        const uint32_t rows = n_rows - r < kBlockRows ? n_rows - r : kBlockRows;
        if (rows < kBlockRows)
          Tiles::configure(rows < Tiles::kLines ? rows : Tiles::kLines,
                           rows < Tiles::kLines ? 0 : rows - Tiles::kLines);
        for (uint32_t p = 0; p < n_panels; p += 2, sums.first += kBlockBytes) {
          const bool last = begin + n == k;
          const TileSums there = last ? place(r, p) : TileSums{};
          multiply_block<Tiles, Weights::kInputs, Weights::kWeights>(
              {rows > Tiles::kLines, n_panels - p > 1,
               input + r * stride + uint64_t{2} * Weights::kInputs * begin, stride,
               scratch + p * kPanelBytes, kPanelBytes, (n + kStep - 1) / kStep,
               there.first == nullptr ? sums : there},
              begin == 0 ? nullptr : &sums);
          if (last && there.first == nullptr) put(r, rows, p, sums);
        }
        if (rows < kBlockRows) Tiles::configure(Tiles::kLines, Tiles::kLines);
      }
    }
    Tiles::release();
  }

  // Weights [begin, begin + n) of a panel's rows, on their way while another one is unpacked.
  static void ask_for(const Panel& panel, uint32_t begin, uint32_t n) {
    const uint64_t bytes = Format::row_bytes(n);
    const std::byte* row = panel.first + Format::row_bytes(begin);
    for (uint32_t i = 0; i < kPanel; ++i, row += panel.stride)
      ask_for_lines<kIntoSecondCache>(row, bytes + kCacheLine);
  }

  // Row r of a panel's sums.
  static const float* line(const TileSums& sums, uint32_t r, uint32_t panel) {
    return reinterpret_cast<const float*>(sums.first + panel * sums.panel +
                                          r / Tiles::kLines * sums.row_tile +
                                          r % Tiles::kLines * sums.line);
  }
};

template <class Isa, class Format>
struct TileMultiply {
  using Slice = TileSlice<Isa, Format>;
  using Tiles = typename Isa::Tiles;
  using Columns = typename Isa::Columns;
  using Input = typename Slice::Input;
  static constexpr int32_t kFormat = Format::kFormat, kKind = Input::kKind;
  static constexpr uint32_t kRows = kTileSliceRows;
  static constexpr uint32_t kPanel = Slice::kPanel;

  static uint32_t columns(uint32_t, uint32_t) { return kTileColumns; }
  static void ask_for(const MatmulMember&, const MatmulSlice&) {}  // a slice is long enough
  // With a weight that has fewer rows than a panel.
  static uint64_t scratch_bytes(uint32_t k) {
    return Slice::scratch_bytes() + kPanel * Format::row_bytes(k);
  }

  static void run(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
                  std::byte* scratch) {
    const uint64_t stride = Input::row_bytes(member.k);
    const Panel weight = whole_panel<Format>(member, kPanel, scratch + Slice::scratch_bytes());
    Slice tiles{input + slice.first_row * stride, stride, slice.n_rows, member.k, 0, {}};
    PanelPlace places[Slice::kPanels];
    for (uint64_t j = slice.begin; j < slice.end; j += kPanel) {
      const PanelPlace place = place_panel(member.n, j, slice.end, kPanel);
      tiles.panels[tiles.n_panels] = {weight.first + place.from * weight.stride, weight.stride};
      places[tiles.n_panels++] = place;
    }
    const auto is_whole = [&](uint32_t p) { return p >= tiles.n_panels || places[p].n == kPanel; };
    tiles.multiply(
        scratch,
        // What nothing is added to goes where it belongs at once.
        [&](uint32_t r, uint32_t p) {
          if (member.adds || member.bias != nullptr || !is_whole(p) || !is_whole(p + 1))
            return TileSums{};
          auto* const out =
              reinterpret_cast<std::byte*>(out_at(member, slice.first_row + r, places[p].from));
          const uint64_t line = sizeof(float) * member.stride;
          return TileSums{out, Tiles::kLines * line, Tiles::kLineBytes, line};
        },
        [&](uint32_t r, uint32_t n_rows, uint32_t p, const TileSums& sums) {
          for (uint32_t i = 0; i < 2 && p + i < tiles.n_panels; ++i)
            for (uint32_t row = 0; row < n_rows; ++row)
              put_line(member, slice.first_row + r + row, places[p + i], Slice::line(sums, row, i));
        });
  }

 private:
  static void put_line(const MatmulMember& member, uint64_t row, const PanelPlace& place,
                       const float* line) {
    const uint64_t j = place.from + place.skipped;
    if (place.n == kPanel)
      put_panel<Columns>(member, row, j, Columns::load(line));
    else
      put(member, row, j, line + place.skipped, place.n);
  }
};

}  // namespace akunu::cpu
