// A row tile over several panels side by side: what is loaded of an input row serves all of them.
//
// 1. What it computes. What the tile for a single panel (`Row`) does, for each panel: the same
//    operations on a lane in the same order, so the bits are the same.
// 2. What bounds it. The multipliers. With one panel it would be the loads: two for two products,
//    and two loads a cycle are the limit.
// 3. What is done about it. Four bytes of a row are loaded once for all panels. Registers are
//    structs of one register for each panel; their loops have unroll pragmas, since GCC would keep
//    the structs in memory. How many rows fit the registers is the level's policy
//    (kMultiPanelRows, kInt16Rows).
// 4. What it brought. AVX2, one Zen 4 core: Q4_0 from 114 to 130 * 10^9 products a second, Q6_K
//    from 91 to 98. docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/kernels/row_tile.h"

namespace akunu::cpu {

// `Row` is the row tile for a single panel.
template <class Row, uint32_t kPanels_, uint32_t kTileRows_>
struct MultiPanelRowTile : Row {
  using Single = Row;
  using Columns = typename Single::Registers;
  using Registers = MultiPanelRowTile;
  static constexpr uint32_t kPanels = kPanels_, kTileRows = kTileRows_;
  static constexpr uint32_t interleaved_rows(uint32_t n) { return n; }

  struct Floats {
    typename Columns::Floats of[kPanels];
  };
  struct Ints {
    typename Columns::Ints of[kPanels];
  };

  static Floats zero() {
    return each<Floats>([](uint32_t) { return Columns::zero(); });
  }
  static Floats multiply(const Floats& a, const Floats& b) {
    return each<Floats>([&](uint32_t p) { return Columns::multiply(a.of[p], b.of[p]); });
  }
  static Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    return each<Floats>(
        [&](uint32_t p) { return Columns::multiply_add(a.of[p], b.of[p], c.of[p]); });
  }
  static Floats to_float(const Ints& v) {
    return each<Floats>([&](uint32_t p) { return Columns::to_float(v.of[p]); });
  }

  template <class Format>
  static void pack_group(const auto& group, uint32_t panel, auto& out) {
    GroupFor<Single, Format> single;
    Single::template pack_group<Format>(group, 0, single);
    for (uint32_t j = 0; j < Single::template kCodes<Format>; ++j)
      out.codes[j].of[panel] = single.codes[j];
    if constexpr (Single::template kScaleForm<Format> != ScaleForm::in_codes)
      for (uint32_t i = 0; i < Format::kDots; ++i) out.scale[i].of[panel] = single.scale[i];
    if constexpr (requires { single.minimum; }) out.minimum.of[panel] = single.minimum;
  }
  template <class Format>
  static void pack_minima(const auto& of_group, uint32_t panel, uint32_t index, auto& out) {
    for (uint32_t i = 0; i < Format::kDots; ++i)
      out.minima[Format::kDots * index + i].of[panel] = of_group.minima[i];
  }
  static void pack_factor(const auto& of_group, uint32_t panel, auto& out) {
    out.factor.of[panel] = of_group.factor;
  }
  template <class Format, uint32_t kFirst, uint32_t kCount>
  static Ints start(const InputGroup& group) {
    return each<Ints>(
        [&](uint32_t) { return Single::template start<Format, kFirst, kCount>(group); });
  }
  static Floats row_scales(const float* scale) {
    return each<Floats>([&](uint32_t) { return Single::row_scales(scale); });
  }
  template <class Format>
  static Floats sum(const InputGroup& group, uint32_t i) {
    return each<Floats>([&](uint32_t) { return Single::template sum<Format>(group, i); });
  }
  static Ints integers(uint32_t x) {
    return each<Ints>([&](uint32_t) { return Columns::integers(x); });
  }
  static typename Columns::Floats of_panel(const Floats& sums, uint32_t panel) {
    return sums.of[panel];
  }

 private:
  template <class Out>
  static Out each(const auto& make) {
    Out v;
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kPanels; ++p) v.of[p] = make(p);
    return v;
  }
};

}  // namespace akunu::cpu
