// What the block formats share: where a block lies, how a single weight is found, and what a panel of
// columns (panel.h) reads of their blocks.
#pragma once

#include "cpu/kernels/panel.h"

namespace akunu::cpu {

// `Trait::weight(block, i)` is weight i of a block as float32. `Layout` is the block as it lies in
// the file: a file aligns it to two bytes at least, and so does the device.
template <class Isa, class Trait, class Layout, uint32_t kWeights>
struct Blocks {
  using Input = QuantInput<Isa>;
  using Columns = typename Isa::Columns;
  using Floats = typename Columns::Floats;
  using Ints = typename Columns::Ints;
  using Scales = GroupScales<Columns, kWeights / 32>;

  // What most formats have; see panel.h.
  static constexpr uint32_t kDots = 1;
  static constexpr bool kSigned = false;
  static constexpr uint32_t kOffset = 0;
  static constexpr bool kHasMinimum = false;
  static constexpr uint32_t kGroups = kWeights / 32, kSpan = 1;

  static constexpr uint64_t row_bytes(uint32_t k) {
    return uint64_t{k / kWeights} * sizeof(Layout);
  }
  static const Layout& block(const std::byte* row, uint64_t b) {
    static_assert(alignof(Layout) <= 2);
    return reinterpret_cast<const Layout*>(row)[b];
  }
  static float element(const std::byte* row, uint64_t i) {
    return Trait::weight(block(row, i / kWeights), static_cast<uint32_t>(i % kWeights));
  }

 protected:
  // Where the block of a group begins in the panel's first row.
  static const std::byte* at(const Panel& panel, uint32_t group) {
    return panel.first + uint64_t{group / kGroups} * sizeof(Layout);
  }
  // kRegisters / 4 runs of 16 bytes of every column, from byte `offset` of a group's block on.
  template <uint32_t kRegisters>
  static void load_bytes(const Panel& panel, uint32_t group, uint64_t offset, Ints* out) {
    for (uint32_t i = 0; i < kRegisters; i += 4) {
      Ints four[4];
      Columns::transpose(at(panel, group) + offset + 4 * i, panel.stride, four);
      for (uint32_t j = 0; j < 4; ++j) out[i + j] = four[j];
    }
  }
  // Fields of `kBits` bits at bit kShift of every byte.
  template <int kShift, uint32_t kBits>
  static Ints fields(Ints bytes) {
    constexpr uint32_t kMask = ((1u << kBits) - 1) * 0x01010101u;
    if constexpr (kShift == 0)
      return Columns::bit_and(bytes, Columns::integers(kMask));
    else
      return Columns::bit_and(Columns::template shift_right<kShift>(bytes),
                              Columns::integers(kMask));
  }
  // 16 bytes of every column to 32 codes: the low nibbles, then the high ones.
  static void nibbles(const Ints (&bytes)[4], Ints (&out)[8]) {
    for (uint32_t j = 0; j < 4; ++j) {
      out[j] = fields<0, 4>(bytes[j]);
      out[4 + j] = fields<4, 4>(bytes[j]);
    }
  }
  // Byte i of each lane as a number.
  template <int kByte>
  static Ints byte_of(Ints v) {
    if constexpr (kByte == 3)
      return Columns::template shift_right<24>(v);
    else
      return Columns::bit_and(Columns::template shift_right<8 * kByte>(v), Columns::integers(0xff));
  }
};

// Blocks of 32 weights: they begin with a scale, and where there are minima what is added to every
// weight comes next.
template <class Isa, class Trait, class Layout, bool kMinimum>
struct SmallBlocks : Blocks<Isa, Trait, Layout, 32> {
  using Base = Blocks<Isa, Trait, Layout, 32>;
  using Columns = typename Base::Columns;
  static constexpr bool kHasMinimum = kMinimum;

  static void scales(const Panel& panel, uint32_t group, typename Base::Scales& out) {
    const std::byte* first = Base::at(panel, group);
    out.scale[0][0] = Columns::gather_halves(first, panel.stride);
    if constexpr (kMinimum) {
      out.minimum_scale[0] = Columns::gather_halves(first + sizeof(uint16_t), panel.stride);
      out.minimum[0] = Columns::integers(0x00010001u);
    }
  }
};

}  // namespace akunu::cpu
