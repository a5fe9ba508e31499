// Decoding a panel: walks the groups of 32 weights along k, and gives each to the caller in registers.
//
// 1. What it does. Opens a block (or two that are read together), loads and decodes its groups, and
//    calls the caller with each of them; prefetches the next panel as it goes (panel_prefetch.h).
// 2. What bounds it. For one row the decoding instructions, where weights are in cache: of 23
//    cycles for a group of Q4_K with AVX-512, 5 transpose, 4 multiply, 3 load the input, 3
//    prefetch.
// 3. What is done about it. All is flattened into the caller, so that groups stay in registers.
//    Direct tiles take codes and scales where they lie in their bytes (direct_codes). Super-blocks
//    are a loop over half or a fourth of a block.
// 4. What was tried and did not pay. All scales of a super-block at once (they spill), opening a
//    block before the products of the one before it, products before the transposition:
//    docs/decisions/weights-and-formats-on-the-cpu.md, prefetching-on-the-cpu.md.
#pragma once

#include <type_traits>

#include "cpu/kernels/panel.h"
#include "cpu/kernels/panel_prefetch.h"
#include "cpu/kernels/row_tiles.h"

namespace akunu::cpu {

template <class Isa, class Format>
struct PanelGroups {
  using Columns = typename Isa::Columns;
  using Group = GroupFor<typename RowTilesFor<Isa, Format>::Direct, Format>;
  struct RotatedGroup : Group {  // its codes are rotated
    static constexpr bool kIsRotated = true;
  };
  using OfGroup =
      SuperBlock<Columns, Format, 1>;  // the factor of the super-block, and the group's minima
  static constexpr bool sums_are_exact() {
    if constexpr (Format::kSuperBlock) {
      constexpr ProductRange kRange = product_range<Format>();
      return 32 * 127 * (kRange.highest > -kRange.lowest ? kRange.highest : -kRange.lowest) <
             1 << 24;
    }
    return true;
  }
  static_assert(sums_are_exact(), "a float has 24 bits");

  // Calls use(group, g, of_group) for every group of the panel in order, and close(of_group, g)
  // behind the last group of a super-block that began with group g. kFewRows: rows of a direct
  // tile, whose codes are direct_codes; 0: a packed tile.
  template <uint32_t kFewRows = 0>
  static inline void for_each_group(const auto& panel, uint32_t k, const auto& use,
                                    const auto& close) {
    constexpr uint32_t kSpans = Format::kGroups / Format::kSpan;
    uint32_t first = 0;
    for (; first + Format::kGroups <= k / 32; first += Format::kGroups) {
      auto block = Format::open(to_load(panel), first);
      OfGroup of_group;
      if constexpr (Format::kSuperBlock) of_group.factor = block.d;
      const auto unpack_span = [&](uint32_t span) {
        typename Format::Raw raw;
        unpack<0, Format::kSpan, kFewRows>(panel, block, raw, of_group, Place{first, span}, use);
      };
      if constexpr (kSpans == 1) {
        unpack_span(0);
      } else {
        // The empty statement keeps it a loop. Unrolled, each load would advance by a super-block,
        // two or three lines at a time: a Zen 5 loses a fifth of its bandwidth with such strides
        // (docs/decisions/prefetching-on-the-cpu.md).
        for (uint32_t span = 0; span < kSpans; ++span) {
          asm("" : "+r"(span));
          unpack_span(span);
          Format::next_span(block);
        }
      }
      if constexpr (Format::kSuperBlock) close(of_group, first);
    }
    if constexpr (!Format::kSuperBlock && Format::kGroups > 1)
      if (first < k / 32) {
        OfGroup none;
        typename Format::Raw raw;
        unpack<0, 1, kFewRows>(panel, Format::open_one(panel, first), raw, none, Place{first, 0},
                               use);
      }
  }

 private:
  // A span of the block that begins with group `first`.
  struct Place {
    uint32_t first, span;
  };

  // Formats with one group per load prefetch with their loads. The groups of a super-block share
  // bytes, which are loaded in a burst, and prefetches would come in bursts too: instead, each
  // group prefetches its share, before and after its products.
  static const auto& to_load(const auto& panel) {
    if constexpr (Format::kSuperBlock)
      return static_cast<const Panel&>(panel);
    else
      return panel;
  }
  template <uint32_t>
  static inline void prefetch(const Panel&, const Place&, const auto&) {}
  // The kHalf-th half of a group's share of the span.
  template <uint32_t kHalf, int kInto, bool kInOrder>
  static inline void prefetch(const PrefetchingPanel<kInto, kInOrder>& panel, const Place& place,
                              const auto& read) {
    if constexpr (Format::kSuperBlock) {
      constexpr uint64_t kRowBytes = Format::row_bytes(32 * Format::kGroups);
      constexpr uint64_t kBytes = Columns::kCount * kRowBytes * Format::kSpan / Format::kGroups;
      constexpr uint64_t kBegin = kHalf * kBytes / (2 * Format::kSpan);
      constexpr uint64_t kEnd = (kHalf + 1) * kBytes / (2 * Format::kSpan);
      const std::byte* const span =
          prefetch_address<Columns, kInto>(panel, place.first / Format::kGroups * kRowBytes) +
          place.span * kBytes;
#pragma GCC unroll 8
      for (uint64_t line = (kBegin + kCacheLine - 1) / kCacheLine * kCacheLine; line < kEnd;
           line += kCacheLine)
        Columns::template prefetch<kInto>(span + line, read);
    }
  }

  // Decodes kCount groups from the span's kIndex-th on.
  template <uint32_t kIndex, uint32_t kCount, uint32_t kFewRows>
  static inline void unpack(const auto& panel, const auto& block, typename Format::Raw& raw,
                            OfGroup& of_group, const Place& place, const auto& use) {
    Format::template load<kIndex>(to_load(panel), place.first, place.span, raw);
    using Block = std::remove_cvref_t<decltype(block)>;
    constexpr bool kRotated = Format::template is_rotated<kIndex, kFewRows, Block>;
    std::conditional_t<kRotated, RotatedGroup, Group> group;
    if constexpr (kFewRows > 0) {
      Format::template direct_scale<kIndex>(block, group);
      Format::template direct_codes<kIndex, kFewRows>(block, raw, group.codes);
      constexpr float kCodeFactor = static_cast<float>(Format::template kCodeFactor<kIndex>) *
                                    static_cast<float>(Format::template kScaleFactor<kIndex>);
      if constexpr (kCodeFactor > 1)
        for (auto& scale : group.scale)
          scale = Columns::multiply(scale, Columns::broadcast(1.0f / kCodeFactor));
    } else {
      Format::template scale<kIndex>(block, group);
      Format::template codes<kIndex>(block, raw, group.codes);
    }
    if constexpr (Format::kSigned)
      for (auto& codes : group.codes) codes = Columns::signed_codes(codes);
    if constexpr (Format::kSuperBlock && Format::kHasMinimum)
      Format::template minima<kIndex>(block, of_group.minima);
    prefetch<2 * kIndex>(panel, place, group.codes[0]);
    use(group, place.first + place.span * Format::kSpan + kIndex, of_group);
    prefetch<2 * kIndex + 1>(panel, place, group.codes[7]);
    if constexpr (kCount > 1)
      unpack<kIndex + 1, kCount - 1, kFewRows>(panel, block, raw, of_group, place, use);
  }
};

}  // namespace akunu::cpu
