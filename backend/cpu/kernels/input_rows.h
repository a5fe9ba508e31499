// Rows of a quantised input, as the micro-kernel (microkernel.h) walks them: addresses only. What
// they hold is the activation kind's (q8_32, q16_32: docs/kernels.md), what `prepare` adds the row
// tile's.
#pragma once

#include <stdint.h>

#include <cstddef>

namespace akunu::cpu {

// n input rows of k codes, `stride` bytes apart. Where a row tile packs several rows into one
// (kRows), n and the stride count packed rows. A tile with more rows than there are repeats the
// last one.
struct InputRows {
  const std::byte* first;
  uint64_t stride;
  uint32_t k, n;
  const std::byte* prepared = nullptr;  // what the row tile's `prepare` computed from them
  uint64_t prepared_stride = 0;
};
// One input row: its codes, and what `prepare` computed from them.
struct InputRow {
  const std::byte *codes, *prepared;
};
// A group of 32 codes of one input row.
struct InputGroup {
  const int8_t* codes;
  const float* scale;
  const int16_t* half_sums;  // of the first 16 codes, and of the others
  const std::byte* prepared;
  const std::byte* rotated = nullptr;  // see RotatedCodes
};

// The codes of a group in rotated order, four at a time: of every kRotation codes the last two come
// first, as blocks have them that begin in the middle of a 4-byte word. Used as a pointer would be:
// rotated + i are codes i to i + 3.
template <uint32_t kRotation>
struct RotatedCodes {
  const int8_t* codes;
  const std::byte* first;  // the first four of every kRotation

  const int8_t* operator+(uint32_t code) const {
    if (code % kRotation != 0) return codes + code - 2;
    return reinterpret_cast<const int8_t*>(first) + 4 * (code / kRotation);
  }
};

}  // namespace akunu::cpu
