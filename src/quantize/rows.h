// Rows of numbers as the blocks of a GGUF type, and back: one file per family of types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quantize/level.h"

namespace akunu::quantize {

// What rows of a type are written with and read by. Rows are whole blocks.
struct RowCoder {
  uint32_t type;  // GGUF's number
  // Writes the blocks of `x`, finite numbers. `importance` says how much each counts: as many, not
  // negative, or none. False for a row with a number so large that the type has no scale for it.
  bool (*encode)(std::span<const float> x, std::span<const float> importance, std::byte* blocks);
  // Reads as many numbers as `x` has room for.
  void (*decode)(const std::byte* blocks, std::span<float> x);
};

}  // namespace akunu::quantize

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

std::span<const RowCoder> float_coders();        // F32, F16, BF16
std::span<const RowCoder> blocks_32_coders();    // Q4_0, Q4_1, Q5_0, Q5_1, Q8_0
std::span<const RowCoder> super_block_coders();  // Q2_K, Q3_K, Q4_K, Q5_K, Q6_K
std::span<const RowCoder> table_coders();        // IQ4_NL, IQ4_XS, MXFP4

// The coder of a type, by GGUF's number; null if there is none.
const RowCoder* find_coder(uint32_t type);

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
