// The way in which a matrix unit multiplies a weight (matmul.h says what a way is).
//
// The input's rows are in bf16 and taken as they lie. Two tiles of input rows times two panels of the
// weight keep four tiles of sums in registers, so that each loaded tile is used twice. A slice goes
// through k in parts, and in each through its panels: two are unpacked, for all its input rows.
//
// Steps of 32 along k are summed in order, whatever rows are beside: a row has the same bits alone,
// among 16 or 512.
#pragma once

#include "cpu/kernels/matmul.h"
#include "cpu/kernels/tiles/block.h"
#include "cpu/kernels/tiles/unpack.h"

namespace akunu::cpu {

constexpr uint32_t kTileColumns = 128;    // of a slice
constexpr uint32_t kTileSliceRows = 512;  // of a slice: what an unpacked weight is used for
// Steps along k of a part: two panels stay in the first cache (32 KiB) while the input's rows go by, and
// those (512 KiB) in the second, for all panels of the slice.
constexpr uint32_t kPartSteps = 16;

template <class Isa, class Format>
struct TileMultiply {
  using Tiles = typename Isa::Tiles;
  using Columns = typename Isa::Columns;
  using Input = Bf16Input<Isa>;
  static constexpr int32_t kFormat = Format::kFormat, kKind = Input::kKind;
  static constexpr uint32_t kRows = kTileSliceRows;
  static constexpr uint32_t kPanel = Columns::kCount;
  static constexpr uint64_t kBlockBytes = 4 * Tiles::kTileBytes;

  static uint32_t columns(uint32_t) { return kTileColumns; }

  // Two unpacked panels, sums of all blocks, and a weight with fewer rows than a panel.
  static uint64_t scratch_bytes(uint32_t k) {
    return 2 * kPanelBytes + kTileColumns / (2 * kPanel) * kPairSumsBytes +
           kPanel * Format::row_bytes(k);
  }

  template <bool kAdd>
  static void run(const MatmulMember& member, const std::byte* input, uint64_t first_row,
                  uint32_t n_inputs, uint64_t begin, uint64_t end, std::byte* scratch) {
    std::byte* const all_sums = scratch + 2 * kPanelBytes;
    std::byte* const room = all_sums + kTileColumns / (2 * kPanel) * kPairSumsBytes;
    const Panel weight = whole_panel<Format>(member, kPanel, room);
    Tiles::configure(Tiles::kLines, Tiles::kLines);
    for (uint32_t k = 0; k < member.k; k += kPartSteps * kStep) {
      const uint32_t n = member.k - k < kPartSteps * kStep ? member.k - k : kPartSteps * kStep;
      Pair pair{scratch, all_sums, 0, {}};
      for (uint64_t j = begin; j < end; j += 2 * kPanel, pair.sums += kPairSumsBytes) {
        pair.n_panels = end - j > kPanel ? 2 : 1;
        for (uint32_t p = 0; p < pair.n_panels; ++p) {
          pair.places[p] = place_panel(member.n, j + p * kPanel, end, kPanel);
          TileWeights<Isa, Format>::unpack(
              {weight.first + pair.places[p].from * weight.stride + Format::row_bytes(k),
               weight.stride},
              n, scratch + p * kPanelBytes);
        }
        multiply_pair<kAdd>(member, input, first_row, n_inputs, pair, k, n);
      }
    }
    Tiles::release();
  }

 private:
  static constexpr uint64_t kPanelBytes = kPartSteps * Tiles::kTileBytes;
  static constexpr uint64_t kPairSumsBytes = kTileSliceRows / kBlockRows * kBlockBytes;

  // Two panels, unpacked, or the one that is left.
  struct Pair {
    const std::byte* tiles;
    std::byte* sums;
    uint32_t n_panels;
    PanelPlace places[2];
  };

  // Weights [k, k + n) of the product.
  template <bool kAdd>
  static void multiply_pair(const MatmulMember& member, const std::byte* input, uint64_t first_row,
                            uint32_t n_inputs, const Pair& pair, uint32_t k, uint32_t n) {
    const uint64_t stride = Input::row_bytes(member.k), out_stride = uint64_t{4} * member.n;
    const bool last = k + n == member.k;
    // What nothing is added to goes where it belongs at once.
    bool direct = last && !kAdd && member.bias == nullptr;
    for (uint32_t p = 0; p < pair.n_panels; ++p) direct = direct && pair.places[p].n == kPanel;
    TileSums sums{pair.sums, 2 * Tiles::kTileBytes, Tiles::kTileBytes, Tiles::kLineBytes};
    for (uint32_t r = 0; r < n_inputs; r += kBlockRows, sums.first += kBlockBytes) {
      const uint32_t n_rows = n_inputs - r < kBlockRows ? n_inputs - r : kBlockRows;
      if (n_rows < kBlockRows)
        Tiles::configure(n_rows < Tiles::kLines ? n_rows : Tiles::kLines,
                         n_rows < Tiles::kLines ? 0 : n_rows - Tiles::kLines);
      const std::byte* rows = input + (first_row + r) * stride + uint64_t{2} * k;
      std::byte* out = reinterpret_cast<std::byte*>(member.out) + (first_row + r) * out_stride +
                       4 * pair.places[0].from;
      const TileSums to =
          direct ? TileSums{out, Tiles::kLines * out_stride, 4 * kPanel, out_stride} : sums;
      multiply_block<Tiles>(n_rows > Tiles::kLines, pair.n_panels == 2, rows, stride, pair.tiles,
                            kPanelBytes, (n + kStep - 1) / kStep, k == 0 ? nullptr : &sums, to);
      if (!last || direct) continue;
      for (uint32_t p = 0; p < pair.n_panels; ++p)
        put_tiles<kAdd>(member, first_row + r, n_rows, pair.places[p], sums.first + p * sums.panel);
    }
    if (n_inputs % kBlockRows != 0) Tiles::configure(Tiles::kLines, Tiles::kLines);
  }

  // Sums of a panel, of both row tiles, to where they belong.
  template <bool kAdd>
  static void put_tiles(const MatmulMember& member, uint64_t first_row, uint32_t n_rows,
                        const PanelPlace& place, const std::byte* sums) {
    for (uint32_t r = 0; r < n_rows; ++r) {
      const float* line = reinterpret_cast<const float*>(
          sums + r / Tiles::kLines * 2 * Tiles::kTileBytes + r % Tiles::kLines * Tiles::kLineBytes);
      const uint64_t j = place.from + place.skipped;
      if (place.n == kPanel)
        put_panel<Columns, kAdd>(member, first_row + r, j, Columns::load(line));
      else
        put<kAdd>(member, first_row + r, j, line + place.skipped, place.n);
    }
  }
};

}  // namespace akunu::cpu
