// MLX's formats, whose parts are planes of their own, each row after row.
//
// 1. What it computes. One weight as float32 (`element`), for embeddings. What matmuls read of the
//    same planes: formats_planes.h.
// 2. Where to change it. Bits, group sizes and types of scale: `mlx_format_at` (core/kinds.h).
//
// Affine groups of 32, 64 or 128 weights of a row: weight = scale * code + bias.
//   codes   [n, k * bits / 32] words of 32 bits: a stream of codes of 2, 3, 4, 5, 6 or 8 bits, from the
//           lowest bit on. Of 32 weights there are as many words as a code has bits.
//   scales  [n, k / group] float16, bfloat16 or float32
//   biases  [n, k / group], the same
//
// mxfp4: weight = scale * code, groups of 32.
//   codes   [n, k / 8] words of 8 codes of 4 bits: sign, two bits of exponent, one of mantissa
//   scales  [n, k / 32] bytes: powers of two, 2^(byte - 127)
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

// Code i of a row, from the bytes that it lies in.
template <uint32_t kBits>
static inline uint32_t code_at(const std::byte* codes, uint64_t i) {
  const uint64_t bit = i * kBits, shift = bit % 8;
  uint32_t bits = static_cast<uint32_t>(codes[bit / 8]);
  if (shift + kBits > 8) bits |= static_cast<uint32_t>(codes[bit / 8 + 1]) << 8;
  return bits >> shift & ((1u << kBits) - 1);
}

template <class Isa, uint32_t kIndex>
struct MlxAffine {
  static constexpr MlxFormat kMlx = mlx_format_at(kIndex);
  static constexpr int32_t kFormat = number_of(Format::mlx_first) + static_cast<int32_t>(kIndex);
  static constexpr uint32_t kBits = kMlx.bits, kGroup = kMlx.group;
  static constexpr uint64_t kScaleBytes = kMlx.scale == MlxScale::f32 ? 4 : 2;

  // A row in each plane.
  struct Row {
    const std::byte* codes;
    const std::byte* scales;
    const std::byte* biases;
  };

  static constexpr uint64_t row_bytes(uint32_t k) { return uint64_t{k} / 8 * kBits; }  // of codes
  // `more`: the planes behind the codes.
  static Row row(const std::byte* codes, const std::byte* const* more, uint64_t j, uint32_t k) {
    const uint64_t begin = j * (k / kGroup) * kScaleBytes;
    return {codes + j * row_bytes(k), more[0] + begin, more[1] + begin};
  }
  // With a scale of 16 bits the product is exact, and the sum rounds once.
  static float element(const Row& row, uint64_t i) {
    const uint64_t group = i / kGroup;
    return number(row.scales, group) * static_cast<float>(code_at<kBits>(row.codes, i)) +
           number(row.biases, group);
  }

 private:
  static float number(const std::byte* plane, uint64_t group) {
    const std::byte* const p = plane + kScaleBytes * group;
    if constexpr (kMlx.scale == MlxScale::f32) return load_unaligned<float>(p);
    const auto bits = load_unaligned<uint16_t>(p);
    if constexpr (kMlx.scale == MlxScale::f16) return Isa::half_to_float(bits);
    return __builtin_bit_cast(float, uint32_t{bits} << 16);
  }
};

template <class Isa>
struct MlxMxfp4 {
  static constexpr int32_t kFormat = number_of(Format::mlx_mxfp4);
  static constexpr uint32_t kGroup = 32;

  struct Row {
    const std::byte* codes;
    const std::byte* scales;
  };

  static constexpr uint64_t row_bytes(uint32_t k) { return uint64_t{k} / 2; }  // of codes
  static Row row(const std::byte* codes, const std::byte* const* more, uint64_t j, uint32_t k) {
    return {codes + j * row_bytes(k), more[0] + j * (k / kGroup)};
  }
  static float element(const Row& row, uint64_t i) {
    return scale(row, i / kGroup) * value(code_at<4>(row.codes, i));
  }

 private:
  // 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the same below zero.
  static float value(uint32_t code) {
    const uint32_t exponent = code >> 1 & 3u, mantissa = code & 1u;
    const uint32_t halves = exponent == 0 ? mantissa : (2u + mantissa) << (exponent - 1);
    const float size = 0.5f * static_cast<float>(static_cast<int32_t>(halves));
    return code >> 3 != 0 ? -size : size;
  }
  static float scale(const Row& row, uint64_t group) {
    const auto exponent = static_cast<uint32_t>(row.scales[group]);
    // 255 is no number; 2^-127 is below the smallest normal float.
    const uint32_t bits = exponent == 255 ? 0x7fc00000u
                          : exponent == 0 ? 0x400000u
                                          : exponent << 23;
    return __builtin_bit_cast(float, bits);
  }
};

}  // namespace akunu::cpu
