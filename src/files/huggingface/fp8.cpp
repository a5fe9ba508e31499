#include "files/huggingface/fp8.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace akunu {
namespace {

uint16_t nearest_bfloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

float fp8_value(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                   : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code >> 7 != 0 ? -size : size;
}

std::vector<uint16_t> expand_fp8(std::span<const std::byte> codes, uint64_t rows, uint64_t k,
                                 const Fp8Scales& scales) {
  std::array<float, 256> values{};
  for (size_t i = 0; i < values.size(); ++i) values[i] = fp8_value(static_cast<uint8_t>(i));
  const uint64_t blocks = (k + scales.block_columns - 1) / scales.block_columns;
  std::vector<uint16_t> result(rows * k);
  for (uint64_t row = 0; row < rows; ++row) {
    const float* const of_row = scales.values.data() + row / scales.block_rows * blocks;
    for (uint64_t block = 0; block < blocks; ++block) {
      const uint64_t end = std::min((block + 1) * scales.block_columns, k);
      for (uint64_t i = block * scales.block_columns; i < end; ++i)
        result[row * k + i] =
            nearest_bfloat(values[static_cast<uint8_t>(codes[row * k + i])] * of_row[block]);
    }
  }
  return result;
}

}  // namespace akunu
