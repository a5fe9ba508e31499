// Quantised matmuls: the arithmetic, and what a format has to say.
//
// 1. What it computes. A panel is Columns::kCount weight rows side by side, a weight row (a column
//    of the result) in each lane. A group of 32 weights is multiplied with a group of 32 codes of
//    the input. The dot product is a whole number, and exact; then come one to three float
//    operations, below.
// 2. What bounds it. One row: memory, or decoding where weights are in cache. Many rows: the multipliers.
// 3. What is done about it. Bytes are transposed in registers as they lie in the file, so nothing
//    is repacked at load, and a format decodes all columns with the same instructions. Few rows are
//    multiplied while codes are decoded, more from packed panels (multiply_panels.h). Prefetching:
//    panel_prefetch.h. Loops: panel_groups.h, microkernel.h.
// 4. What was tried and did not pay. Lanes along k (other bits for each tile, a float operation for
//    every eight numbers), a second, repacked copy of the weights, four blocks read together,
//    scales as mantissa bits: docs/decisions/weights-and-formats-on-the-cpu.md.
//
// The arithmetic, in float32 and in this order:
//
//   t   = float(dot) * scale
//   t   = float(sum) * minimum + t       with minima: sum = the input's codes
//   acc = t * input_scale + acc          groups in order of k
//
// In a super-block, whose groups' scales and minima are whole numbers times a common factor each,
//
//   t   = float(dot * scale)             exact, also where each half of a group has a dot and a scale
//   b   = t * input_scale + b            from 0 on, groups in order of k
//   acc = (float(sum) * input_scale) * minimum + acc   with minima, groups in order of k, halves likewise
//   acc = b * factor + acc                             behind the last group
//
// So the bits of a result do not depend on how many rows are computed beside it, nor on its lane, tile
// or slice.
//
// A format is a trait with these members:
//
//   kFormat              number_of the format
//   kDots                1 or 2: scales (and minima) of a group
//   kLargestCode         codes are 0 .. kLargestCode or, with kSigned, int8
//   kOffset              is subtracted from a code
//   kHasMinimum          groups have minima
//   kGroups              groups of a block, or of two blocks that are read together
//   kSuperBlock          a block is a super-block; then kLowestScale and kHighestScale too
//   kSpan                groups that are unrolled; a loop goes over a block's spans
//   row_bytes(k)
//   open(panel, group)   reads what the groups of the block that begins with `group` share: scales
//                        (and minima), in few registers
//   open_one(panel, group)
//                        the same where blocks are read in pairs, for a row's odd last one
//   next_span(block)     moves on what `open` read to the next span
//   Raw, load<i>(panel, group, span, raw)
//                        reads the bytes of that block that the span's i-th group is the first to
//                        need
//   codes<i>(block, raw, out)
//                        the codes of the span's i-th group: register j has weights 4 j to 4 j + 3
//                        of every column; codes of 16 bits: 2 j and 2 j + 1
//   scale<i>(block, group)
//                        its scale (and minimum)
//   minima<i>(block, out)
//                        of a super-block's group; the factor is block.d
//   direct_codes<i, kRows>(block, raw, out), direct_scale<i>(block, group)
//                        the same for direct row tiles of kRows rows, where it is cheaper to leave
//                        bits where they are. Codes of super-blocks are then kCodeFactor<i> times
//                        too large, the upper half of other formats' codes kUpperFactor<kRows>
//                        times, scales of super-blocks kScaleFactor<i> times (powers of two; the
//                        product is divided, which is exact). And where is_rotated<i, kRows, type
//                        of block>, of every kRotation codes the last two come first (RotatedCodes
//                        in input_rows.h)
//
// `load` and `open` read nothing outside the rows: the last row may end where the file does.
#pragma once

#include <stdint.h>

#include <cstddef>

namespace akunu::cpu {

template <uint32_t kValue>
struct Constant {
  static constexpr uint32_t value = kValue;
};

// Columns::kCount rows of a weight; row c begins at first + c * stride.
struct Panel {
  const std::byte* first;
  uint64_t stride;
};
// The panel that begins `rows` rows later.
static inline Panel panel_from(const Panel& panel, uint64_t rows) {
  return {panel.first + rows * panel.stride, panel.stride};
}

}  // namespace akunu::cpu
