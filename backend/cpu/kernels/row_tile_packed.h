// The row tile for many rows: the panel is packed once for all of them, in the form that the level
// multiplies fastest.
//
// 1. Scales of super-blocks become pairs of int16 (policy kInt16Scales: AVX2 multiplies with them
//    when it adds products up), or go into the codes where every product fits a byte (kWholeBytes),
//    or stay floats.
// 2. Signed codes become int16 (kWidensSigned) where products of signed bytes cost more: AVX2 has
//    no instruction for those.
// 3. The input's rows stay as they are; `prepare` adds what a row brings to every panel.
#pragma once

#include "cpu/isa/dot_interleaved.h"
#include "cpu/kernels/row_tile.h"

namespace akunu::cpu {

template <class Columns>
struct PackedRowTile : DirectRowTile<Columns> {
  using Direct = DirectRowTile<Columns>;
  using typename Columns::Floats;
  using typename Columns::Ints;

  using Policy = typename Columns::Policy;
  template <class Format>
  static constexpr bool kWidened = Format::kSigned && Policy::kWidensSigned;

  // Whether the sums of codes that meet a scale, less their offset, fit an int16 (dot_scaled). With an
  // offset, pair_starts is for half a group.
  template <class Format>
  static constexpr bool sums_fit_int16() {
    if constexpr (Format::kSigned) return false;
    if constexpr (Format::kOffset == 0) return true;
    constexpr uint32_t kOffset = Format::kOffset, kAbove = Format::kLargestCode - kOffset;
    constexpr uint32_t kMost = kOffset > kAbove ? kOffset : kAbove;
    return Format::kDots == 2 && 2 * 127 * 4 * kMost <= 32767;
  }
  template <class Format>
  static constexpr ScaleForm scale_form() {
    if constexpr (Format::kSuperBlock) {
      if constexpr (Policy::kInt16Scales && sums_fit_int16<Format>()) return ScaleForm::pairs;
      constexpr ProductRange kRange = product_range<Format>();
      if constexpr (Policy::kWholeBytes && kRange.highest - kRange.lowest <= 255)
        return ScaleForm::in_codes;
    }
    return ScaleForm::floats;
  }
  template <class Format>
  static constexpr ScaleForm kScaleForm = scale_form<Format>();

  template <class Format>
  static constexpr uint32_t start_offset() {
    if constexpr (kScaleForm<Format> == ScaleForm::in_codes)
      return static_cast<uint32_t>(-product_range<Format>().lowest);
    return Direct::template kOffset<Format>;
  }
  template <class Format>
  static constexpr uint32_t kStartOffset = start_offset<Format>();
  template <class Format>
  static constexpr uint32_t kStarts = kStartOffset<Format> == 0                   ? 0
                                      : kScaleForm<Format> == ScaleForm::in_codes ? 1
                                                                                  : Format::kDots;
  template <class Format>
  static constexpr uint32_t kCodes = kWidened<Format> ? 16 : 8;
  template <class Format>
  static constexpr uint64_t kGroupBytes =
      kWidened<Format> ? 64 : 4 * (kStarts<Format> + Direct::template kSums<Format>);

  template <class Format>
  static void pack_group(const auto& group, uint32_t panel, auto& out) {
    if constexpr (kWidened<Format>) {
      for (uint32_t j = 0; j < 8; ++j)
        Columns::widen(group.codes[j], out.codes[j], out.codes[8 + j]);
      out.scale[0] = group.scale[0];
    } else if constexpr (kScaleForm<Format> == ScaleForm::pairs) {
      for (uint32_t j = 0; j < 8; ++j) out.codes[j] = group.codes[j];
      for (uint32_t i = 0; i < Format::kDots; ++i) out.scale[i] = Columns::pairs_of(group.scale[i]);
    } else if constexpr (kScaleForm<Format> == ScaleForm::in_codes) {
      constexpr uint32_t kOfScale = 8 / Format::kDots;
      for (uint32_t j = 0; j < 8; ++j)
        out.codes[j] = products_of_bytes<Format::kOffset, kStartOffset<Format>>(
            group.codes[j], Columns::to_integer(group.scale[j / kOfScale]));
    } else {
      Direct::template pack_group<Format>(group, panel, out);
    }
  }
  template <class Format>
  static void prepare(const InputGroup& first, uint32_t n_groups, std::byte* out) {
    if constexpr (kWidened<Format>) {
      static_assert(kStarts<Format> == 0 && Direct::template kSums<Format> == 0);
      for (uint32_t g = 0; g < n_groups; ++g, out += kGroupBytes<Format>)
        Columns::widen_codes(first.codes + uint64_t{32} * g, out);
    } else {
      constexpr uint64_t kStride = kGroupBytes<Format>;
      if constexpr (kStarts<Format> != 0 && kScaleForm<Format> == ScaleForm::pairs)
        prepare_pairs_of_starts<kStartOffset<Format>>(first, n_groups, out, kStride);
      else
        Direct::template prepare_starts<kStartOffset<Format>, kStarts<Format>>(first, n_groups, out,
                                                                               kStride);
      Direct::template prepare_sums<Format>(first, n_groups, out + 4 * kStarts<Format>, kStride);
    }
  }

  template <class Format>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    InputGroup group = Direct::of_row(row.codes, k, g);
    group.prepared = row.prepared + g * kGroupBytes<Format>;
    if constexpr (kWidened<Format>) group.codes = reinterpret_cast<const int8_t*>(group.prepared);
    return group;
  }
  template <class Format, uint32_t kFirst, uint32_t>
  static Ints start(const InputGroup& group) {
    return Direct::template start_at<kStarts<Format>, kFirst>(group);
  }
  template <class Format>
  static Floats sum(const InputGroup& group, uint32_t i) {
    return Direct::sum_at(group, kStarts<Format> + i);
  }
  template <uint32_t kRegisters>
  static void dot_signed(auto& sums, const auto* codes, const auto& x) {
    if constexpr (Policy::kWidensSigned)
      dot_int16<Columns, kRegisters>(sums, codes, x);
    else
      Columns::template dot_signed<kRegisters>(sums, codes, x);
  }

 private:
  // (code - kOffset) * scale + kMore of each of four codes. The four bytes are multiplied as one
  // number: no result carries into its neighbour.
  template <uint32_t kOffset, uint32_t kMore>
  static Ints products_of_bytes(Ints codes, Ints scale) {
    const Ints more = Columns::add(Columns::integers(kMore),
                                   Columns::multiply_low(scale, Columns::integers(0 - kOffset)));
    return Columns::add(Columns::multiply_low(codes, scale),
                        Columns::multiply_low(more, Columns::integers(0x01010101u)));
  }

  template <uint32_t kOffset>
  static void prepare_pairs_of_starts(const InputGroup& first, uint32_t n_groups, std::byte* out,
                                      uint64_t stride) {
    for (uint32_t g = 0; g < n_groups; ++g, out += stride) {
      int32_t halves[2];
      Columns::template pair_starts<kOffset>(first.codes + uint64_t{32} * g, halves);
      store_number(out, halves[0]);
      store_number(out + 4, halves[1]);
    }
  }
};

}  // namespace akunu::cpu
