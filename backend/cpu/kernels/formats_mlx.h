// MLX's formats, whose parts are planes of their own, each row after row.
//
// 1. What it computes. Float32 weights, one (`element`) or a group of them (`unpack`), which
//    matmul_kernels_mlx.cpp multiplies with a float32 input.
// 2. What bounds it. Not measured; by its instructions, unpacking: a shift, a mask, a conversion
//    and a multiply and add for each weight, of which memory has a byte or less.
// 3. What is done about it. Little: the format is right, not fast (docs/decisions/0022). A group
//    is unpacked once for all rows of a slice; 32 codes are whole words for every number of bits,
//    so the loop over them unrolls with constant shifts. There is no path of whole numbers, as
//    blocks have.
// 4. Where to change it. Bits, group sizes and types of scale: `mlx_format_at` (core/kinds.h).
//    Another layout of planes: a struct with the members of MlxMxfp4.
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

// 32 codes of kBits each, out of kBits words.
template <uint32_t kBits>
static inline void unpack_codes(const std::byte* p, uint32_t (&codes)[32]) {
  constexpr uint32_t kMask = (1u << kBits) - 1;
  uint32_t words[kBits];
  __builtin_memcpy(words, p, sizeof words);
#pragma GCC unroll 32
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t bit = i * kBits, word = bit / 32, shift = bit % 32;
    uint32_t code = words[word] >> shift;
    if (shift + kBits > 32) code |= words[(bit + kBits - 1) / 32] << (32 - shift);
    codes[i] = code & kMask;
  }
}

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
  static void unpack(const Row& row, uint32_t group, float (&weights)[kGroup]) {
    const float scale = number(row.scales, group), bias = number(row.biases, group);
    for (uint32_t part = 0; part < kGroup / 32; ++part) {
      uint32_t codes[32];
      unpack_codes<kBits>(row.codes + (uint64_t{kGroup} / 32 * group + part) * (4 * kBits), codes);
      for (uint32_t i = 0; i < 32; ++i)
        weights[32 * part + i] = scale * static_cast<float>(static_cast<int32_t>(codes[i])) + bias;
    }
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
  static void unpack(const Row& row, uint32_t group, float (&weights)[kGroup]) {
    uint32_t codes[32];
    unpack_codes<4>(row.codes + uint64_t{16} * group, codes);
    const float s = scale(row, group);
    for (uint32_t i = 0; i < 32; ++i) weights[i] = s * value(codes[i]);
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
