// MLX's affine formats: weight = scale * code + bias, in groups of 64 of a row, codes of 4 or 8 bits. Three
// planes, each row after row:
//   codes   uint32 [n, k / 8] or [n, k / 4], code i of a word at bit 4 i or 8 i
//   scales  half [n, k / 64]
//   biases  half [n, k / 64]
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

template <class Isa, uint32_t kBits>
struct Mlx64 {
  static constexpr int32_t kFormat = number_of(kBits == 4 ? Format::mlx4_64 : Format::mlx8_64);
  static constexpr uint32_t kGroup = 64;

  // A row in each plane.
  struct Row {
    const std::byte* codes;
    const std::byte* scales;
    const std::byte* biases;
  };

  static constexpr uint64_t row_bytes(uint32_t k) { return uint64_t{k} / 8 * kBits; }  // of codes
  // `more`: the planes behind the codes.
  static Row row(const std::byte* codes, const std::byte* const* more, uint64_t j, uint32_t k) {
    const uint64_t groups = j * (k / kGroup);
    return {codes + j * row_bytes(k), more[0] + 2 * groups, more[1] + 2 * groups};
  }
  // The product is exact, the sum rounds once.
  static float element(const Row& row, uint64_t i) {
    const uint64_t group = i / kGroup;
    return number(row.scales, group) * static_cast<float>(code(row, i)) + number(row.biases, group);
  }
  static void unpack(const Row& row, uint32_t group, float (&weights)[kGroup]) {
    const float scale = number(row.scales, group), bias = number(row.biases, group);
    for (uint32_t i = 0; i < kGroup; ++i)
      weights[i] = scale * static_cast<float>(code(row, uint64_t{kGroup} * group + i)) + bias;
  }

 private:
  static uint32_t code(const Row& row, uint64_t i) {
    if constexpr (kBits == 8) return static_cast<uint32_t>(row.codes[i]);
    return static_cast<uint32_t>(row.codes[i / 2]) >> i % 2 * 4 & 15u;
  }
  static float number(const std::byte* plane, uint64_t group) {
    return Isa::half_to_float(load_unaligned<uint16_t>(plane + 2 * group));
  }
};

template <class Isa>
struct Mlx4_64 : Mlx64<Isa, 4> {};
template <class Isa>
struct Mlx8_64 : Mlx64<Isa, 8> {};

}  // namespace akunu::cpu
