// Quantised matmuls: panels of Columns::kCount weight rows side by side, a weight row (a column of the
// result) in each lane.
//
// What is multiplied is a group of 32 weights with a group of 32 codes of the input. Its dot
// product is a whole number, and exact; then, in float32 and in this order,
//
//   t   = float(dot) * scale             two dots with a scale each where sub-blocks have 16 weights:
//   t   = float(dot1) * scale1 + t       the second one is added, rounded once
//   t   = float(sum) * minimum_scale + t with minima: sum = the input's codes, times a small whole
//                                        number each
//   acc = t * input_scale + acc          groups in order of k
//
// so a result has the same bits alone, among 16 rows or 512, in every lane, tile and slice.
//
// A format is a trait, and this is all that it adds:
//
//   kFormat              its number in core/format.h
//   kDots                1 or 2 scales in a group of 32
//   kLargestCode         codes are 0 .. kLargestCode, or, with kSigned, int8
//   kOffset              what is subtracted from a code
//   kHasMinimum
//   kGroups              groups in a block
//   kSpan                groups that one `load` reads: those that share bytes
//   row_bytes(k)
//   open(panel, group)              what the groups of the block that begins with `group` share: its
//                                   scales (and minima), in few registers
//   load<i>(panel, group)           the bytes of kSpan groups from the block's i-th on
//   codes<i>(block, raw, out)       the codes of the block's i-th group: register j has, of every
//                                   column, weights 4 j to 4 j + 3
//   scale<i>(block, group)          its scale (and minimum)
//
// `load` and `open` read nothing outside the rows: the last row may end where the file does.
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

template <uint32_t kValue>
struct Constant {
  static constexpr uint32_t value = kValue;
};

// kCount rows of a weight; row c begins at first + c * stride.
struct Panel {
  const std::byte* first;
  uint64_t stride;
};
// The same; while it is read, what follows it in memory is asked for, as many bytes as are read. Its
// lines lie one after another, but groups touch all rows in turn, an order that no processor foresees.
struct AskingPanel : Panel {
  const std::byte* next;  // behind the last row
};

// A group's minima; nothing in formats without.
template <class Columns, bool kPresent>
struct GroupMinimum {
  typename Columns::Ints whole;
  typename Columns::Floats scale;
};
template <class Columns>
struct GroupMinimum<Columns, false> {};

// A group of every column, ready to be multiplied.
template <class Columns, class Format>
struct UnpackedGroup {
  typename Columns::Ints codes[8];
  typename Columns::Floats scale[Format::kDots];
  [[no_unique_address]] GroupMinimum<Columns, Format::kHasMinimum> minimum;
};

// Rows of an input, `stride` bytes apart.
struct InputRows {
  const std::byte* first;
  uint64_t stride;
  uint32_t k;
};

template <class Isa, class Format>
struct PanelProduct {
  using Columns = typename Isa::Columns;
  using Floats = typename Columns::Floats;
  using Ints = typename Columns::Ints;
  using Group = UnpackedGroup<Columns, Format>;

  // Calls use(group, g) for every group of the panel, in order.
  template <class Use>
  static inline void for_each_group(const auto& panel, uint32_t k, const Use& use) {
    for (uint32_t first = 0; first < k / 32; first += Format::kGroups)
      unpack_from<0>(panel, Format::open(panel, first), first, use);
  }

  // sums[r] += input row r . panel, for R rows.
  template <uint32_t R>
  static inline void accumulate(const Group& group, uint32_t g, const InputRows& inputs,
                                Floats (&sums)[R]) {
    const std::byte* row = inputs.first;
    const uint32_t n_groups = inputs.k / 32;
#pragma GCC unroll 16
    for (uint32_t r = 0; r < R; ++r, row += inputs.stride) {
      const int8_t* x = reinterpret_cast<const int8_t*>(row) + uint64_t{32} * g;
      const float* scale = reinterpret_cast<const float*>(row + inputs.k) + g;
      const int16_t* half_sums =
          reinterpret_cast<const int16_t*>(row + inputs.k + uint64_t{4} * n_groups) + 2 * g;
      Floats t;
      if constexpr (Format::kDots == 1) {
        t = Columns::multiply(Columns::to_float(dot<0, 8>(group, x, half_sums)), group.scale[0]);
      } else {
        t = Columns::multiply(Columns::to_float(dot<0, 4>(group, x, half_sums)), group.scale[0]);
        t = Columns::multiply_add(Columns::to_float(dot<4, 4>(group, x, half_sums)), group.scale[1],
                                  t);
      }
      if constexpr (Format::kHasMinimum) {
        const Ints sum =
            Columns::multiply_pairs(Columns::broadcast_pair(half_sums), group.minimum.whole);
        t = Columns::multiply_add(Columns::to_float(sum), group.minimum.scale, t);
      }
      sums[r] = Columns::multiply_add(t, Columns::broadcast(*scale), sums[r]);
    }
  }

 private:
  static constexpr uint32_t kOffset = Format::kSigned ? Columns::kSignedOffset : Format::kOffset;

  // Registers [kFirst, kFirst + kCount) of a group, less the offset of their codes.
  template <uint32_t kFirst, uint32_t kCount>
  static inline Ints dot(const Group& group, const int8_t* x, const int16_t* half_sums) {
    Ints start = Columns::integers(0);
    if constexpr (kOffset != 0) {
      constexpr uint32_t kNegative = static_cast<uint16_t>(-static_cast<int32_t>(kOffset));
      constexpr uint32_t kLow = kFirst == 0 ? kNegative : 0;
      constexpr uint32_t kHigh = kFirst + kCount == 8 ? kNegative : 0;
      start = Columns::multiply_pairs(Columns::broadcast_pair(half_sums),
                                      Columns::integers(kLow | kHigh << 16));
    }
    if constexpr (Format::kSigned)
      return Columns::template dot_signed<kCount>(start, group.codes + kFirst, x + 4 * kFirst);
    else
      return Columns::template dot<Format::kLargestCode, kCount>(start, group.codes + kFirst,
                                                                 x + 4 * kFirst);
  }

  // Groups from the block's kIndex-th on.
  template <uint32_t kIndex, class Block, class Use>
  static inline void unpack_from(const auto& panel, const Block& block, uint32_t first,
                                 const Use& use) {
    unpack_span<kIndex>(block, Format::template load<kIndex>(panel, first), first, use);
    if constexpr (kIndex + Format::kSpan < Format::kGroups)
      unpack_from<kIndex + Format::kSpan>(panel, block, first, use);
  }
  template <uint32_t kIndex, class Block, class Raw, class Use>
  static inline void unpack_span(const Block& block, const Raw& raw, uint32_t first,
                                 const Use& use) {
    Group group;
    Format::template codes<kIndex>(block, raw, group.codes);
    if constexpr (Format::kSigned)
      for (Ints& codes : group.codes) codes = Columns::signed_codes(codes);
    Format::template scale<kIndex>(block, group);
    use(group, first + kIndex);
    if constexpr ((kIndex + 1) % Format::kSpan != 0)
      unpack_span<kIndex + 1>(block, raw, first, use);
  }
};

// Bytes of an unpacked panel.
template <class Isa, class Format>
static constexpr uint64_t panel_room(uint32_t k) {
  return uint64_t{k / 32} * sizeof(UnpackedGroup<typename Isa::Columns, Format>);
}

// Rows of a whole input times one panel; out(r, sums) receives them. `room` is for the unpacked panel:
// panel_room bytes, aligned to 64. Flattened: a word or a trait that stayed a function would take
// its vectors through memory. Not under AddressSanitizer, whose checks of all that take minutes to
// compile.
template <class Isa, class Format, class Out>
#ifndef __SANITIZE_ADDRESS__
[[gnu::flatten]]
#endif
static inline void multiply_panel_columns(const InputRows& inputs, uint32_t n_inputs,
                                          const Panel& panel, std::byte* room, const Out& out) {
  using Product = PanelProduct<Isa, Format>;
  using Columns = typename Isa::Columns;
  using Group = typename Product::Group;
  const auto run = [&](auto n_rows, uint32_t first, const auto& for_each) {
    constexpr uint32_t R = decltype(n_rows)::value;
    typename Columns::Floats sums[R];
    for (auto& sum : sums) sum = Columns::zero();
    const InputRows rows{inputs.first + first * inputs.stride, inputs.stride, inputs.k};
    for_each([&](const Group& group, uint32_t g) {
      Product::template accumulate<R>(group, g, rows, sums);
    });
    for (uint32_t r = 0; r < R; ++r) out(first + r, sums[r]);
  };
  // A few rows take the codes as they are unpacked, many from `room`.
  const AskingPanel weights{panel, panel.first + Columns::kCount * panel.stride};
  const auto from_weights = [&](const auto& use) {
    Product::for_each_group(weights, inputs.k, use);
  };
  if (n_inputs == 1) return run(Constant<1>{}, 0, from_weights);
  if (n_inputs == 2) return run(Constant<2>{}, 0, from_weights);

  Group* groups = reinterpret_cast<Group*>(room);
  Product::for_each_group(weights, inputs.k,
                          [&](const Group& group, uint32_t g) { groups[g] = group; });
  const uint32_t n_groups = inputs.k / 32;
  const auto from_room = [&](const auto& use) {
    for (uint32_t g = 0; g < n_groups; ++g) use(groups[g], g);
  };
  uint32_t first = 0;
  for (; first + Columns::kTileRows <= n_inputs; first += Columns::kTileRows)
    run(Constant<Columns::kTileRows>{}, first, from_room);
  if constexpr (Columns::kTileRows > 4)
    for (; first + 4 <= n_inputs; first += 4) run(Constant<4>{}, first, from_room);
  for (; first < n_inputs; ++first) run(Constant<1>{}, first, from_room);
}

}  // namespace akunu::cpu
