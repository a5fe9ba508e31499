// What the block formats share: where a block begins, how a single weight is found, and how the
// blocks of a panel (panel.h) are read.
//
// 1. What it does. Reads 16 or 32 bytes of every column and transposes them in registers: then a
//    register has the same 4-byte word of every column, and a format decodes it with the same
//    instructions in all lanes.
// 2. What bounds it. For one row in cache the instructions that transpose and shift: of 109 for two
//    groups of Q4_0 with AVX-512, 47 transpose, and 17 align the first block and shift nibbles.
// 3. What is done about it. Blocks of 18, 22 and 34 bytes are read in pairs, as whole words. A
//    single row leaves the upper nibbles in place, and rotates its input instead of aligning
//    weights.
// 4. What was tried and did not pay. Loads that put bytes into lanes under a mask, reading the odd
//    last word alone, four blocks of Q4_0 at once (0.9 from memory). docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/kernels/panel_prefetch.h"
#include "cpu/kernels/row_tiles.h"

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
  static constexpr uint32_t kGroups = kWeights / 32, kSpan = kGroups;
  static constexpr bool kWholeBytes = Columns::Policy::kWholeBytes;
  // kRotation of a format: kCodes, or 0 where the level does not rotate the input.
  template <uint32_t kCodes>
  static constexpr uint32_t rotation() {
    return Columns::Policy::kRotatesInput ? kCodes : 0;
  }
  template <uint32_t>
  static constexpr uint32_t kCodeFactor = 1;
  template <uint32_t>
  static constexpr uint32_t kScaleFactor = 1;
  template <uint32_t>
  static constexpr uint32_t kUpperFactor = 1;
  static constexpr uint32_t kRotation = 0;
  template <uint32_t, uint32_t, class>
  static constexpr bool is_rotated = false;

  static constexpr uint64_t row_bytes(uint32_t k) {
    return uint64_t{k / kWeights} * sizeof(Layout);
  }
  static const Layout& block(const std::byte* row, uint64_t b) {
    static_assert(alignof(Layout) <= 2);
    return reinterpret_cast<const Layout*>(row)[b];
  }
  template <uint32_t kIndex, uint32_t>
  static void direct_codes(const auto& block, const auto& raw, auto& out) {
    Trait::template codes<kIndex>(block, raw, out);
  }
  template <uint32_t kIndex>
  static void direct_scale(const auto& block, auto& group) {
    Trait::template scale<kIndex>(block, group);
  }
  // For formats that read all of a block in `open`.
  struct Raw {};
  template <uint32_t>
  static void load(const auto&, uint32_t, uint32_t, Raw&) {}
  static float element(const std::byte* row, uint64_t i) {
    return Trait::weight(block(row, i / kWeights), static_cast<uint32_t>(i % kWeights));
  }

 protected:
  // Where the block of a group begins in the panel's first row.
  static const std::byte* at(const auto& panel, uint32_t group) {
    return panel.first + uint64_t{group / kGroups} * sizeof(Layout);
  }
  // kWords 4-byte words of every column, from byte `offset` of a group's block on: 32 bytes at a
  // time, then 16, and a rest of fewer words out of the last 16 bytes.
  template <uint32_t kWords>
  static void load_words(const auto& panel, uint32_t group, uint64_t offset, Ints* out) {
    static_assert(kWords >= 4);
    const std::byte* const first = at(panel, group) + offset;
    uint32_t i = 0;
    if constexpr (Columns::Policy::kReadsEight)
      for (; i + 8 <= kWords; i += 8) load_part<8, 0>(panel, first + 4 * i, out + i);
    for (; i + 4 <= kWords; i += 4) load_part<4, 0>(panel, first + 4 * i, out + i);
    constexpr uint32_t kLeft = kWords % 4;
    if constexpr (kLeft != 0)
      load_part<4, 4 - kLeft>(panel, first + 4 * (kWords - 4), out + kWords - kLeft);
  }
  // kCount words; the first kKnown of them have been read before, and are dropped.
  template <uint32_t kCount, uint32_t kKnown>
  static void load_part(const auto& panel, const std::byte* first, Ints* out) {
    Ints words[kCount];
    Columns::transpose(first, panel.stride, words, [&](uint32_t line, const auto& read) {
      constexpr uint32_t kBytes = Columns::kCount * 4 * (kCount - kKnown);
      if (line * kCacheLine < kBytes) prefetch(panel, first + 4 * kKnown, line * kCacheLine, read);
    });
    for (uint32_t j = kKnown; j < kCount; ++j) out[j - kKnown] = words[j];
  }
  // The float16 at byte `offset` of a group's block, of every column.
  static Floats load_halves(const auto& panel, uint32_t group, uint64_t offset) {
    const std::byte* const first = at(panel, group) + offset;
    const Floats halves = Columns::gather_halves(first, panel.stride);
    prefetch(panel, first, 0, halves);
    return halves;
  }
  // Of what a PrefetchingPanel prefetches, the line that lies there as the bytes at `first` lie in the panel.
  static void prefetch(const Panel&, const std::byte*, uint64_t, const auto&) {}
  template <int kInto, bool kInOrder, class OfWeight>
  static void prefetch(const PrefetchingPanel<kInto, kInOrder, OfWeight>& panel,
                       const std::byte* first, uint64_t offset, const auto& read) {
    const auto byte = static_cast<uint64_t>(first - panel.first);
    const std::byte* const line = prefetch_address<Columns, kInto>(panel, byte) + offset;
    if constexpr (kInOrder)
      Columns::template prefetch_in_order<kInto>(line, read);
    else
      Columns::template prefetch<kInto>(line, read);
  }
  // Moves bits kFrom and above of every byte to bit kTo. Bits of neighbouring bytes move in beside them.
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
  static void nibbles(const Ints* bytes, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 4; ++j) {
      out[j] = fields<0, 4>(bytes[j]);
      out[4 + j] = fields<4, 4>(bytes[j]);
    }
  }
  // The same, but high nibbles stay in place, 16 times too large: a single row divides one sum
  // instead of shifting four registers.
  template <uint32_t kRows>
  static constexpr uint32_t kUpperNibbleFactor = kWholeBytes && kRows == 1 ? 16 : 1;
  static void nibbles_in_place(const Ints* bytes, Ints (&out)[8]) {
    for (uint32_t j = 0; j < 4; ++j) {
      out[j] = Columns::bit_and(bytes[j], every_byte(0x0f));
      out[4 + j] = Columns::bit_and(bytes[j], every_byte(0xf0));
    }
  }
  template <uint32_t kRows>
  static void to_direct_codes(const Ints* words, Ints (&out)[8]) {
    if constexpr (Trait::template kUpperFactor<kRows> > 1)
      nibbles_in_place(words, out);
    else
      Trait::to_codes(words, out);
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

// Blocks of 32 weights, read in 4-byte words. Trait::to_codes(words, out) makes codes of the kWords
// that follow the scale, or the scale and the minimum.

// The first word is a scale and a minimum, which is added to every weight.
template <class Isa, class Trait, class Layout>
struct BlocksWithMinimum : Blocks<Isa, Trait, Layout, 32> {
  using Base = Blocks<Isa, Trait, Layout, 32>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr bool kHasMinimum = true;
  static constexpr uint32_t kWords = sizeof(Layout) / 4 - 1;
  static_assert(sizeof(Layout) % 4 == 0);

  struct Block {
    typename Base::Floats scale_and_minimum[2];
    Ints words[kWords];
  };
  static Block open(const auto& panel, uint32_t group) {
    Ints read[1 + kWords];
    Base::template load_words<1 + kWords>(panel, group, 0, read);
    Block block;
    Columns::both_halves(read[0], block.scale_and_minimum);
    for (uint32_t i = 0; i < kWords; ++i) block.words[i] = read[1 + i];
    return block;
  }
  template <uint32_t>
  static void codes(const Block& block, const auto&, Ints (&out)[8]) {
    Trait::to_codes(block.words, out);
  }
  template <uint32_t, uint32_t kRows>
  static void direct_codes(const Block& block, const auto&, Ints (&out)[8]) {
    Base::template to_direct_codes<kRows>(block.words, out);
  }
  template <uint32_t>
  static void scale(const Block& block, auto& group) {
    group.scale[0] = block.scale_and_minimum[0];
    group.minimum = block.scale_and_minimum[1];
  }
};

// Only a scale, a float16: every other block begins in the middle of a 4-byte word, so blocks are
// read in pairs. A half from every row cost more than the codes.
template <class Isa, class Trait, class Layout>
struct PairsOfBlocks : Blocks<Isa, Trait, Layout, 32> {
  using Base = Blocks<Isa, Trait, Layout, 32>;
  using Columns = typename Base::Columns;
  using Ints = typename Base::Ints;
  static constexpr uint32_t kGroups = 2, kSpan = 2;
  static constexpr uint32_t kWords = sizeof(Layout) / 4;  // of codes
  static_assert(sizeof(Layout) % 4 == 2);
  // Blocks of many words are read one at a time: both would not fit the registers.
  static constexpr uint32_t kOpened = kWords < 8 ? 2 : 1;

  struct Block {
    typename Base::Floats scale[2];
    Ints read[kOpened * kWords + 1];
  };
  static Block open(const auto& panel, uint32_t group) {
    Block block;
    Base::template load_words<kOpened * kWords + 1>(panel, group, 0, block.read);
    Columns::both_halves(Columns::low_and_high(block.read[0], block.read[kWords]), block.scale);
    return block;
  }
  // The last block of a row with an odd number of them.
  struct Alone {
    typename Base::Floats scale[1];
    Ints words[kWords];
  };
  static Alone open_one(const auto& panel, uint32_t group) {
    Alone block;
    block.scale[0] = Base::load_halves(panel, group, 0);
    Base::template load_words<kWords>(panel, group, sizeof(uint16_t), block.words);
    return block;
  }
  struct Raw {
    Ints words[kWords];
  };
  template <uint32_t kIndex>
  static void load(const auto& panel, uint32_t group, uint32_t, Raw& raw) {
    if constexpr (kIndex >= kOpened)
      Base::template load_words<kWords>(panel, group, 4 * (kWords + 1), raw.words);
  }
  template <uint32_t kIndex>
  static void codes(const auto& block, const Raw& raw, Ints (&out)[8]) {
    Ints words[kWords];
    words_of<kIndex, false>(block, raw, words);
    Trait::to_codes(words, out);
  }
  template <uint32_t kIndex, uint32_t kRows, class From>
  static constexpr bool is_rotated =
      Trait::kRotation > 0 && kRows == 1 && kIndex == 0 && std::is_same_v<From, Block>;
  template <uint32_t kIndex, uint32_t kRows, class From>
  static void direct_codes(const From& block, const Raw& raw, Ints (&out)[8]) {
    Ints words[kWords];
    words_of<kIndex, is_rotated<kIndex, kRows, From>>(block, raw, words);
    Base::template to_direct_codes<kRows>(words, out);
  }
  template <uint32_t kIndex>
  static void scale(const auto& block, auto& group) {
    group.scale[0] = block.scale[kIndex];
  }

 private:
  // The first block is two bytes off: its words are aligned, or, for a rotated input, only the last
  // two bytes move to the front.
  template <uint32_t kIndex, bool kRotated>
  static void words_of(const Block& block, const Raw& raw, Ints (&words)[kWords]) {
    for (uint32_t i = 0; i < kWords; ++i)
      if constexpr (kIndex >= kOpened)
        words[i] = raw.words[i];
      else if constexpr (kIndex == 1)
        words[i] = block.read[kWords + 1 + i];
      else if constexpr (kRotated)
        words[i] = i > 0 ? block.read[i] : Columns::low_and_high(block.read[kWords], block.read[0]);
      else
        words[i] = Columns::halves_swapped(Columns::low_and_high(block.read[i + 1], block.read[i]));
  }
  template <uint32_t, bool>
  static void words_of(const Alone& block, const Raw&, Ints (&words)[kWords]) {
    for (uint32_t i = 0; i < kWords; ++i) words[i] = block.words[i];
  }
};

}  // namespace akunu::cpu
