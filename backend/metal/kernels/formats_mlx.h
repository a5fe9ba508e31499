// MLX's quantisation in groups of 64, w = scale * code + bias, at 4 and at 8 bits. A weight [n, k],
// k a multiple of 64, is three planes in one buffer, each row after row:
//   codes   uint32 [n, k / 8] or [n, k / 4]: code i of a word at bit 4 i or 8 i
//   scales  half [n, k / 64]
//   biases  half [n, k / 64]
// A plane of codes is a multiple of 32 bytes, so every plane's rows lie at multiples of two and the
// codes of a unit at multiples of 16. A code times a scale is exact (11 + 8 bits), the bias rounds
// once.
#pragma once

#include "metal/kernels/formats.h"

template <uint kBits>
struct MlxRows {
  static constant constexpr uint kBlock = 64;
  static constant constexpr bool kScaled = true;
  static constant constexpr bool kMinimum = true;
  struct Row {
    device const uchar* codes;
    device const half* scales;
    device const half* biases;
  };
  static Row row(device const uchar* weight, uint j, uint n, uint k) {
    device const half* scales =
        reinterpret_cast<device const half*>(weight + ulong(n) * (k / 8 * kBits));
    const uint groups = k / 64;
    return Row{weight + ulong(j) * (k / 8 * kBits), scales + ulong(j) * groups,
               scales + (ulong(n) + j) * groups};
  }
  static uint units(uint k) { return k / 32; }
  static uint position(uint unit, uint run, uint piece) { return 32 * unit + 16 * run + 4 * piece; }
};

struct MLX4 : MlxRows<4> {
  struct Raw {
    uint4 codes;
    float scale, bias;
  };
  static Raw load(Row row, uint unit, uint) {
    return Raw{load_words_16(row.codes + 16 * unit), float(row.scales[unit / 2]),
               float(row.biases[unit / 2])};
  }
  static void unpack(Row, Raw raw, uint, uint run, uint, thread float4 (&q)[4], thread float& scale,
                     thread float& minimum) {
    const uint2 words = run == 0 ? raw.codes.xy : raw.codes.zw;
    for (uint i = 0; i < 2; ++i) {
      const uint word = words[i];
      q[2 * i] = codes_less(uint4(word, word >> 4, word >> 8, word >> 12) & 15u, 0.0f);
      q[2 * i + 1] = codes_less(uint4(word >> 16, word >> 20, word >> 24, word >> 28) & 15u, 0.0f);
    }
    scale = raw.scale;
    minimum = raw.bias;
  }
  static void unpack_16(Row row, uint index, uint k, thread float4 (&q)[4], thread float& scale,
                        thread float& minimum) {
    unpack_sixteen<MLX4>(row, index / 2, index % 2, k, q, scale, minimum);
  }
};

struct MLX8 : MlxRows<8> {
  struct Raw {
    uint4 codes[2];
    float scale, bias;
  };
  static Raw load(Row row, uint unit, uint) {
    Raw raw;
    raw.codes[0] = load_words_16(row.codes + 32 * unit);
    raw.codes[1] = load_words_16(row.codes + 32 * unit + 16);
    raw.scale = float(row.scales[unit / 2]);
    raw.bias = float(row.biases[unit / 2]);
    return raw;
  }
  static void unpack(Row, Raw raw, uint, uint run, uint, thread float4 (&q)[4], thread float& scale,
                     thread float& minimum) {
    for (uint i = 0; i < 4; ++i) q[i] = codes_less(bytes_of(either(raw.codes, run)[i]), 0.0f);
    scale = raw.scale;
    minimum = raw.bias;
  }
  static void unpack_16(Row row, uint index, uint k, thread float4 (&q)[4], thread float& scale,
                        thread float& minimum) {
    unpack_sixteen<MLX8>(row, index / 2, index % 2, k, q, scale, minimum);
  }
};
