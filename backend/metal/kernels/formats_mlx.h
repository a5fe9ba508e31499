// MLX's quantisation in groups of 64, w = scale * code + bias, at 4 and at 8 bits. A weight [n, k],
// k a multiple of 64, is three planes, each row after row:
//   codes   uint32 [n, k / 8] or [n, k / 4]: code i of a word at bit 4 i or 8 i
//   scales  half or bfloat [n, k / 64]
//   biases  the same
// A row of codes is a multiple of 32 bytes, so the codes of a unit lie at multiples of 16. A code times a scale is exact (11 + 8 bits), the bias rounds
// once.
#pragma once

#include "metal/kernels/formats.h"

// S: half, or ushort, which is a bfloat.
inline float mlx_number(half number) { return float(number); }
inline float mlx_number(ushort number) { return as_type<float>(uint(number) << 16); }

template <class S>
struct MlxRow {
  device const uchar* codes;
  device const S* scales;
  device const S* biases;
};

// What all have; a codec has kBits, Codes, load and unpack.
template <class C, class S>
struct MlxGroups {
  static constant constexpr uint kBlock = 64;
  static constant constexpr bool kScaled = true;
  static constant constexpr bool kMinimum = true;
  using Row = MlxRow<S>;
  struct Raw {
    typename C::Codes codes;
    float scale, bias;
  };

  static Row row(Planes weight, uint j, uint k) {
    const ulong groups = ulong(j) * (k / 64);
    return Row{weight.first + ulong(j) * (k / 8 * C::kBits),
               reinterpret_cast<device const S*>(weight.second) + groups,
               reinterpret_cast<device const S*>(weight.third) + groups};
  }
  static uint units(uint k) { return k / 32; }
  static bool is_whole(uint, uint, uint) { return true; }
  static uint position(uint unit, uint run, uint piece) { return 32 * unit + 16 * run + 4 * piece; }
  static Raw load(Row row, uint unit, uint) {
    return Raw{C::load(row.codes, unit), mlx_number(row.scales[unit / 2]),
               mlx_number(row.biases[unit / 2])};
  }
  static void unpack(Row, Raw raw, uint, uint run, uint, thread float4 (&q)[4], thread float& scale,
                     thread float& minimum) {
    C::unpack(raw.codes, run, q);
    scale = raw.scale;
    minimum = raw.bias;
  }
  static uint unit_of(uint index) { return index / 2; }
  static uint run_of(uint index) { return index % 2; }
  static void unpack_16(Row row, uint index, uint k, thread float4 (&q)[4], thread float& scale,
                        thread float& minimum) {
    const uint unit = unit_of(index);
    unpack(row, load(row, unit, k), unit, run_of(index), k, q, scale, minimum);
  }
};

struct MLX4Codec {
  static constant constexpr uint kBits = 4;
  struct Codes {
    uint4 words;
  };
  static Codes load(device const uchar* codes, uint unit) {
    return Codes{load_words_16(codes + 16 * unit)};
  }
  static void unpack(Codes codes, uint run, thread float4 (&q)[4]) {
    const uint2 words =
        run == 0 ? uint2(codes.words.x, codes.words.y) : uint2(codes.words.z, codes.words.w);
    for (uint i = 0; i < 2; ++i) {
      const uint word = words[i];
      q[2 * i] = codes_less(uint4(word, word >> 4, word >> 8, word >> 12) & 15u, 0.0f);
      q[2 * i + 1] = codes_less(uint4(word >> 16, word >> 20, word >> 24, word >> 28) & 15u, 0.0f);
    }
  }
};
using MLX4 = MlxGroups<MLX4Codec, half>;
using MLX4_BF16 = MlxGroups<MLX4Codec, ushort>;

struct MLX8Codec {
  static constant constexpr uint kBits = 8;
  struct Codes {
    uint4 words[2];
  };
  static Codes load(device const uchar* codes, uint unit) {
    Codes result;
    result.words[0] = load_words_16(codes + 32 * unit);
    result.words[1] = load_words_16(codes + 32 * unit + 16);
    return result;
  }
  static void unpack(Codes codes, uint run, thread float4 (&q)[4]) {
    for (uint i = 0; i < 4; ++i) q[i] = bytes_less(either(codes.words, run)[i], 0.0f);
  }
};
using MLX8 = MlxGroups<MLX8Codec, half>;
using MLX8_BF16 = MlxGroups<MLX8Codec, ushort>;
