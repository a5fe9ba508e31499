// Packing panels for many rows: every group is decoded once for a slice, and stored as the packed
// row tile multiplies it.
//
// 1. What it does. All groups of up to kPanels panels, side by side as the row tile wants them;
//    behind them what super-blocks share.
// 2. What bounds it. Decoding, once for up to 64 rows (int16: 256).
// 3. What is done about it. A function of its own: in one with the multiplication, registers spill.
// 4. What was tried and did not pay. Prefetching while packing (12 rows from memory 0.8).
//    docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/kernels/panel_groups.h"

namespace akunu::cpu {

// A group of the panels that a packed tile multiplies at once, and the super-block of such groups.
template <class Isa, class Format>
using PackedGroup = GroupFor<typename RowTilesFor<Isa, Format>::Packed, Format>;
template <class Isa, class Format>
using PackedSuperBlock =
    SuperBlock<typename RowTilesFor<Isa, Format>::Packed::Registers, Format, Format::kGroups>;
template <class Isa, class Format>
static constexpr uint64_t packed_panel_bytes(uint32_t k) {
  uint64_t bytes = uint64_t{k / 32} * sizeof(PackedGroup<Isa, Format>);
  if (Format::kSuperBlock)
    bytes += uint64_t{k / 32 / Format::kGroups} * sizeof(PackedSuperBlock<Isa, Format>);
  return bytes;
}

// Packs up to kPanels panels of `k` weights: all groups, then the super-blocks. Flattened, as the
// functions that multiply: a primitive or a trait that stayed a call would pass its vectors through
// memory. Not under AddressSanitizer, whose checks of all that take minutes to compile.
template <class Isa, class Format, class OfWeight>
#ifndef __SANITIZE_ADDRESS__
[[gnu::flatten]]
#endif
[[gnu::noinline]] static void pack_panels(
    const OfWeight (&panels)[RowTilesFor<Isa, Format>::Packed::kPanels], uint32_t n_panels,
    uint32_t k, PackedGroup<Isa, Format>* groups) {
  using Groups = PanelGroups<Isa, Format>;
  using Packed = typename RowTilesFor<Isa, Format>::Packed;
  auto* const super_blocks =
      reinterpret_cast<PackedSuperBlock<Isa, Format>*>(groups + k / 32);  // behind them
  for (uint32_t p = 0; p < Packed::kPanels; ++p)  // where one is missing, the first takes its place
    Groups::for_each_group(
        panels[p < n_panels ? p : 0], k,
        [&](const typename Groups::Group& group, uint32_t g, const auto& of_group) {
          Packed::template pack_group<Format>(group, p, groups[g]);
          if constexpr (Format::kSuperBlock && Format::kHasMinimum)
            Packed::template pack_minima<Format>(of_group, p, g % Format::kGroups,
                                                 super_blocks[g / Format::kGroups]);
        },
        [&](const typename Groups::OfGroup& of_group, uint32_t g) {
          Packed::pack_factor(of_group, p, super_blocks[g / Format::kGroups]);
        });
}

}  // namespace akunu::cpu
