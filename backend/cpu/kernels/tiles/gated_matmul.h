// gated_matmul on a matrix unit: panels of gate and up alternate, so that each block of sums holds both
// for 16 columns, and becomes the activation while it is in L1. What bounds it, and how slices are
// multiplied: tiles/multiply.h. It saves writing and reading 24 KiB a row of a model of 1,024
// dimensions (docs/decisions/prompts-on-the-cpu.md).
#pragma once

#include "cpu/kernels/activation.h"
#include "cpu/kernels/gate.h"
#include "cpu/kernels/tiles/multiply.h"

namespace akunu::cpu {

template <class Isa, class Format>
struct TileGatedMatmul {
  using Slice = TileSlice<Isa, Format>;
  using Wide = typename Isa::Wide;
  using Input = typename Slice::Input;
  using Activation = BfloatActivation<Wide, Slice::Weights::kInputs>;
  static constexpr uint32_t kPanel = Slice::kPanel;
  // Two pairs of panels: a line of the cache of a row that is written.
  static constexpr MatmulTiling kTiling{kPairColumns, kTileSliceRows,
                                        kTileColumns / 2 / kPairColumns};

  static uint64_t slices(const Call& call) {
    return count_slices(kTiling, static_cast<const GatedMatmulParams*>(call.params)->n,
                        call.n_rows);
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const GatedMatmulParams*>(call.params);
    while (begin < end)
      with_activation<Wide>(params.activation, [&](const auto& function) {
        run_slice(call, params, take_slices(kTiling, call, params.n, begin, end), scratch,
                  function);
      });
  }
  static uint64_t at_once(const Call&) { return kTiling.at_once; }

  // With weights that have fewer rows than a panel.
  static uint64_t scratch_bytes(const Call& call) {
    const uint32_t k = static_cast<const GatedMatmulParams*>(call.params)->k;
    return Slice::scratch_bytes() + 2 * kPanel * Format::row_bytes(k);
  }

  static constexpr KernelEntry entry() {
    return {{Operation::gated_matmul, Input::kKind, {Format::kFormat, Format::kFormat, kAbsent}},
            {slices, run, scratch_bytes, at_once}};
  }

 private:
  template <class Function>
  static void run_slice(const Call& call, const GatedMatmulParams& params, const MatmulSlice& slice,
                        std::byte* scratch, const Function& function) {
    const uint64_t stride = Input::row_bytes(params.k);
    std::byte* const room = scratch + Slice::scratch_bytes();
    const auto weight = [&](uint32_t i) {
      return padded_panel<Format>({call.operands[1 + i], nullptr, nullptr, params.n, params.k, 0},
                                  kPanel, room + i * kPanel * Format::row_bytes(params.k));
    };
    const Panel gate_and_up[] = {weight(0), weight(1)};
    Slice tiles{call.operands[0] + slice.first_row * stride, stride, slice.n_rows, params.k, 0, {}};
    PanelPlace places[Slice::kPanels / 2];
    for (uint64_t j = slice.begin; j < slice.end; j += kPanel) {
      const PanelPlace place = place_panel(params.n, j, slice.end, kPanel);
      places[tiles.n_panels / 2] = place;
      for (const Panel& from : gate_and_up)
        tiles.panels[tiles.n_panels++] = {from.first + place.from * from.stride, from.stride};
    }
    tiles.multiply(scratch, [&](uint32_t p, uint32_t r, const float* gates, const float* ups) {
      const PanelPlace& place = places[p / 2];
      const auto from = static_cast<uint32_t>(place.from), begin = from + place.skipped;
      Activation::write(call.operands[3] + (slice.first_row + r) * Activation::row_bytes(params.n),
                        params.n, begin, begin + place.n, [&](uint32_t i, uint32_t n) {
                          return Wide::multiply(function(Wide::load(gates + (i - from), n)),
                                                Wide::load(ups + (i - from), n));
                        });
    });
  }
};

}  // namespace akunu::cpu
