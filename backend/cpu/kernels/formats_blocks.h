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

  // What most formats have; see panel.h.
  static constexpr uint32_t kDots = 1;
  static constexpr bool kSigned = false;
  static constexpr uint32_t kOffset = 0;
  static constexpr bool kHasMinimum = false;
  static constexpr bool kSuperBlock = false;
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
  static const std::byte* at(const auto& panel, uint32_t group) {
    return panel.first + uint64_t{group / kGroups} * sizeof(Layout);
  }
  // kRegisters / 4 runs of 16 bytes of every column, from byte `offset` of a group's block on.
  template <uint32_t kRegisters>
  static void load_bytes(const auto& panel, uint32_t group, uint64_t offset, Ints* out) {
    for (uint32_t i = 0; i < kRegisters; i += 4) {
      const std::byte* const first = at(panel, group) + offset + 4 * i;
      Ints four[4];
      Columns::transpose(first, panel.stride, four, [&](uint32_t part, const auto& read) {
        // A quarter of what is read is as long as a line, or as two or four quarters are.
        constexpr uint64_t kQuarter = Columns::kCount * 4;
        if (part * kQuarter % kCacheLine == 0) ask(panel, first, part * kQuarter, read);
      });
      for (uint32_t j = 0; j < 4; ++j) out[i + j] = four[j];
    }
  }
  // The halves at byte `offset` of a group's block.
  static Floats load_halves(const auto& panel, uint32_t group, uint64_t offset) {
    const std::byte* const first = at(panel, group) + offset;
    const Floats halves = Columns::gather_halves(first, panel.stride);
    ask(panel, first, 0, halves);
    return halves;
  }
  // Of what an AskingPanel asks for, the line that lies there as the bytes at `first` lie in the panel.
  static void ask(const Panel&, const std::byte*, uint64_t, const auto&) {}
  static void ask(const AskingPanel& panel, const std::byte* first, uint64_t offset,
                  const auto& read) {
    const auto byte = static_cast<uint64_t>(first - panel.first);
    Columns::ask(asked_at<Columns>(panel, byte) + offset, read);
  }
  // Bits kFrom and above of every byte brought to bit kTo; bits of its neighbours are beside them.
  template <int kFrom, int kTo>
  static Ints moved(Ints bytes) {
    if constexpr (kFrom == kTo)
      return bytes;
    else if constexpr (kFrom > kTo)
      return Columns::template shift_right<kFrom - kTo>(bytes);
    else
      return Columns::template shift_left<kTo - kFrom>(bytes);
  }
  // `kBits` bits at bit kShift of every byte.
  template <int kShift, uint32_t kBits>
  static Ints fields(Ints bytes) {
    return Columns::bit_and(moved<kShift, 0>(bytes), every_byte((1u << kBits) - 1));
  }
  // The same, with kUpper more bits above them, which are at bit kUpperShift of `upper`.
  template <int kShift, uint32_t kBits, int kUpperShift, uint32_t kUpper>
  static Ints fields(Ints bytes, Ints upper) {
    return Columns::and_or(moved<kUpperShift, kBits>(upper),
                           every_byte(((1u << kUpper) - 1) << kBits), fields<kShift, kBits>(bytes));
  }
  static Ints every_byte(uint32_t byte) { return Columns::integers(byte * 0x01010101u); }
  // 16 bytes of every column to 32 codes: the low nibbles, then the high ones.
  static void nibbles(const Ints (&bytes)[4], Ints (&out)[8]) {
    for (uint32_t j = 0; j < 4; ++j) {
      out[j] = fields<0, 4>(bytes[j]);
      out[4 + j] = fields<4, 4>(bytes[j]);
    }
  }
  // `kBits` bits of each lane from bit kShift on as a number, and as one with a sign.
  template <int kShift, int kBits>
  static Ints number(Ints v) {
    if constexpr (kShift + kBits == 32)
      return Columns::template shift_right<kShift>(v);
    else
      return Columns::bit_and(moved<kShift, 0>(v), Columns::integers((1u << kBits) - 1));
  }
  template <int kShift, int kBits>
  static Ints signed_number(Ints v) {
    return Columns::template shift_right_signed<32 - kBits>(moved<kShift, 32 - kBits>(v));
  }
};

// Blocks of 32 weights: they begin with a scale, and where there are minima what is added to every
// weight comes next.
template <class Isa, class Trait, class Layout, bool kMinimum>
struct SmallBlocks : Blocks<Isa, Trait, Layout, 32> {
  using Base = Blocks<Isa, Trait, Layout, 32>;
  using Columns = typename Base::Columns;
  static constexpr bool kHasMinimum = kMinimum;

  struct Block {
    typename Base::Floats scale, minimum;
  };
  static Block open(const auto& panel, uint32_t group) {
    Block block;
    block.scale = Base::load_halves(panel, group, 0);
    if constexpr (kMinimum) block.minimum = Base::load_halves(panel, group, sizeof(uint16_t));
    return block;
  }
  template <uint32_t>
  static void scale(const Block& block, auto& group) {
    group.scale[0] = block.scale;
    if constexpr (kMinimum) group.minimum = block.minimum;
  }
};

}  // namespace akunu::cpu
