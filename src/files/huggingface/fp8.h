// Weights in FP8 (e4m3) as bfloat16: what a directory stores in 8 bits is expanded when it is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace akunu {

// The value of a byte: sign, four bits of exponent, three of mantissa; 0x7f and 0xff are no numbers.
float fp8_value(uint8_t code);

// Scales of a weight [rows, k]: one for each block of so many rows and columns, row after row of
// blocks.
struct Fp8Scales {
  std::vector<float> values;
  uint64_t block_rows = 1, block_columns = 1;
};

// Each value times its scale, rounded to the nearest bfloat16, to even where two are as near.
std::vector<uint16_t> expand_fp8(std::span<const std::byte> codes, uint64_t rows, uint64_t k,
                                 const Fp8Scales& scales);

}  // namespace akunu
