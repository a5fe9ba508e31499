// What a group of 32 weights of every column of a panel is once its bytes are decoded: registers of
// codes, scales and minima.
//
// Which of them there are, and in which form, depends on the format and on the row tile that
// multiplies the group.
#pragma once

#include <stdint.h>

namespace akunu::cpu {

// How the scales of a group meet its dot products. In a super-block they are whole numbers, and all
// three ways are exact:
//   floats    a dot product becomes a float and is multiplied with the scale
//   pairs     the scale, twice as int16 in a lane, multiplies the int16 sums of a dot product when those are added
//   in_codes  the codes were multiplied with it when the panel was packed
enum class ScaleForm { floats, pairs, in_codes };

// The range of (code - offset) * scale in a super-block.
struct ProductRange {
  int32_t lowest, highest;
};
template <class Format>
static constexpr ProductRange product_range() {
  constexpr int32_t kOffset = static_cast<int32_t>(Format::kOffset);
  const int32_t codes[] = {-kOffset, static_cast<int32_t>(Format::kLargestCode) - kOffset};
  const int32_t scales[] = {Format::kLowestScale, Format::kHighestScale};
  ProductRange range{0, 0};
  for (const int32_t code : codes)
    for (const int32_t scale : scales) {
      range.lowest = code * scale < range.lowest ? code * scale : range.lowest;
      range.highest = code * scale > range.highest ? code * scale : range.highest;
    }
  return range;
}

template <class Registers, ScaleForm kAre, uint32_t kCount>
struct GroupScales {
  typename Registers::Floats scale[kCount];
};
template <class Registers, uint32_t kCount>
struct GroupScales<Registers, ScaleForm::pairs, kCount> {
  typename Registers::Ints scale[kCount];
};
template <class Registers, uint32_t kCount>
struct GroupScales<Registers, ScaleForm::in_codes, kCount> {};

template <class Registers, bool kPresent>
struct GroupMinimum {
  typename Registers::Floats minimum;
};
template <class Registers>
struct GroupMinimum<Registers, false> {};

// A group of 32 weights of every column, as a row tile multiplies it.
template <class Registers, uint32_t kCodes, ScaleForm kAre, class Format>
struct ColumnGroup : GroupScales<Registers, kAre, Format::kDots>,
                     GroupMinimum<Registers, Format::kHasMinimum && !Format::kSuperBlock> {
  typename Registers::Ints codes[kCodes];
};
template <class RowTile, class Format>
using GroupFor = ColumnGroup<typename RowTile::Registers, RowTile::template kCodes<Format>,
                             RowTile::template kScaleForm<Format>, Format>;

template <class Registers, uint32_t kCount>
struct SuperBlockMinima {
  typename Registers::Floats minima[kCount];
};
template <class Registers>
struct SuperBlockMinima<Registers, 0> {};

// The factor that all groups of a super-block share, and the minima of kOf of the groups.
template <class Registers, class Format, uint32_t kOf>
struct SuperBlock : SuperBlockMinima<Registers, Format::kHasMinimum ? kOf * Format::kDots : 0> {
  typename Registers::Floats factor;
};

}  // namespace akunu::cpu
