// MLX's formats, whose parts lie in planes of their own, each row after row.
//
// Affine groups, w = scale * code + bias, of 2, 3, 4, 5, 6 or 8 bits. Types are of a number of bits and
// a type of scale; how many weights share a scale is a function constant.
//   codes   uint32 [n, k * bits / 32]: a stream of codes, the lowest bit first
//   scales  half, bfloat or float [n, k / group]
//   biases  the same
// A unit's codes are as many words as a code has bits: of 4 and 8 bits they lie at multiples of 16
// bytes. A code times a scale of 16 bits is exact (11 + 8 bits), the bias rounds once.
//
// mxfp4, w = scale * code, groups of 32.
//   codes   uint32 [n, k / 8]: code i of a word at bit 4 i, a float of four bits
//   scales  uint8 [n, k / 32]: 2^(byte - 127)
#pragma once

#include "metal/kernels/formats_table.h"

// Weights of an affine format that share a scale: 32, 64 or 128.
constant uint kMlxGroup [[function_constant(7)]];

// S: half, ushort, which is a bfloat, or float.
inline float mlx_number(half number) { return float(number); }
inline float mlx_number(ushort number) { return as_type<float>(uint(number) << 16); }
inline float mlx_number(float number) { return number; }

template <class S>
struct MlxRow {
  device const uchar* codes;
  device const S* scales;
  device const S* biases;
};

// What all have; a codec has kBits, Codes, load and unpack.
template <class C, class S>
struct MlxGroups {
  static constant constexpr uint kBlock = 32;
  static constant constexpr bool kScaled = true;
  static constant constexpr bool kMinimum = true;
  using Row = MlxRow<S>;
  struct Raw {
    typename C::Codes codes;
    float scale, bias;
  };

  static Row row(Planes weight, uint j, uint k) {
    const ulong groups = ulong(j) * (k / kMlxGroup);
    return Row{weight.first + ulong(j) * (k / 8 * C::kBits),
               reinterpret_cast<device const S*>(weight.second) + groups,
               reinterpret_cast<device const S*>(weight.third) + groups};
  }
  static uint units(uint k) { return k / 32; }
  static bool is_whole(uint, uint, uint) { return true; }
  static uint position(uint unit, uint run, uint piece) { return 32 * unit + 16 * run + 4 * piece; }
  static Raw load(Row row, uint unit, uint) {
    const uint group = 32 * unit / kMlxGroup;
    return Raw{C::load(row.codes, unit), mlx_number(row.scales[group]),
               mlx_number(row.biases[group])};
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
    if (sizeof(S) == sizeof(float)) {  // such a product rounds, as MLX has it
      for (uint piece = 0; piece < 4; ++piece) q[piece] = q[piece] * scale;
      scale = 1.0f;
    }
  }
};

// Codes of any number of bits: the 16 of a run are as many halves of words as a code has bits.
template <uint kBits_>
struct MlxCodec {
  static constant constexpr uint kBits = kBits_;
  static constant constexpr uint kWords = (kBits_ + 1) / 2, kMask = (1u << kBits_) - 1u;
  struct Run {
    uint words[kWords];
  };
  struct Codes {
    Run runs[2];
  };
  static Codes load(device const uchar* codes, uint unit) {
    device const ushort* halves = reinterpret_cast<device const ushort*>(codes + 4 * kBits_ * unit);
    Codes result;
    for (uint run = 0; run < 2; ++run)
      for (uint i = 0; i < kWords; ++i) {
        const uint low = halves[kBits_ * run + 2 * i];
        const uint high = 2 * i + 1 < kBits_ ? halves[kBits_ * run + 2 * i + 1] : ushort(0);
        result.runs[run].words[i] = low | high << 16;
      }
    return result;
  }
  static uint code(Run run, uint i) {
    const uint bit = kBits_ * i, word = bit / 32, shift = bit % 32;
    uint bits = run.words[word] >> shift;
    if (shift + kBits_ > 32) bits |= run.words[min(word + 1, kWords - 1)] << (32 - shift);
    return bits & kMask;
  }
  static void unpack(Codes codes, uint which, thread float4 (&q)[4]) {
    const Run run = either(codes.runs, which);
#pragma unroll
    for (uint i = 0; i < 4; ++i)
      q[i] = codes_less(
          uint4(code(run, 4 * i), code(run, 4 * i + 1), code(run, 4 * i + 2), code(run, 4 * i + 3)),
          0.0f);
  }
};

// Of 4 and of 8 bits, by words.
struct Mlx4Codec {
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

struct Mlx8Codec {
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

using MLX2 = MlxGroups<MlxCodec<2>, half>;
using MLX3 = MlxGroups<MlxCodec<3>, half>;
using MLX4 = MlxGroups<Mlx4Codec, half>;
using MLX5 = MlxGroups<MlxCodec<5>, half>;
using MLX6 = MlxGroups<MlxCodec<6>, half>;
using MLX8 = MlxGroups<Mlx8Codec, half>;
using MLX2_BF16 = MlxGroups<MlxCodec<2>, ushort>;
using MLX3_BF16 = MlxGroups<MlxCodec<3>, ushort>;
using MLX4_BF16 = MlxGroups<Mlx4Codec, ushort>;
using MLX5_BF16 = MlxGroups<MlxCodec<5>, ushort>;
using MLX6_BF16 = MlxGroups<MlxCodec<6>, ushort>;
using MLX8_BF16 = MlxGroups<Mlx8Codec, ushort>;
using MLX2_F32 = MlxGroups<MlxCodec<2>, float>;
using MLX3_F32 = MlxGroups<MlxCodec<3>, float>;
using MLX4_F32 = MlxGroups<Mlx4Codec, float>;
using MLX5_F32 = MlxGroups<MlxCodec<5>, float>;
using MLX6_F32 = MlxGroups<MlxCodec<6>, float>;
using MLX8_F32 = MlxGroups<Mlx8Codec, float>;

struct MlxBytesRow {
  device const uchar* codes;
  device const uchar* scales;
};

struct MLX_MXFP4 {
  static constant constexpr uint kBlock = 32;
  static constant constexpr bool kScaled = true;
  static constant constexpr bool kMinimum = false;
  using Row = MlxBytesRow;
  struct Raw {
    uint4 words;
    float scale;
  };

  static Row row(Planes weight, uint j, uint k) {
    return Row{weight.first + ulong(j) * (k / 2), weight.second + ulong(j) * (k / 32)};
  }
  static uint units(uint k) { return k / 32; }
  static bool is_whole(uint, uint, uint) { return true; }
  static uint position(uint unit, uint run, uint piece) { return 32 * unit + 16 * run + 4 * piece; }
  static Raw load(Row row, uint unit, uint) {
    const uint e = row.scales[unit];
    // The table's numbers are twice the floats. 255 is no number; below 2^-126 there is no exponent.
    const uint bits = e == 255 ? 0x7fc00000u : e < 2 ? 0x00200000u << e : (e - 1) << 23;
    return Raw{load_words_16(row.codes + 16 * unit), as_type<float>(bits)};
  }
  static void unpack(Row, Raw raw, uint, uint run, uint, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    const uint2 words =
        run == 0 ? uint2(raw.words.x, raw.words.y) : uint2(raw.words.z, raw.words.w);
    for (uint i = 0; i < 2; ++i) {
      const uint word = words[i];
      q[2 * i] = fp4_values(uint4(word, word >> 4, word >> 8, word >> 12) & 15u);
      q[2 * i + 1] = fp4_values(uint4(word >> 16, word >> 20, word >> 24, word >> 28) & 15u);
    }
    scale = raw.scale;
  }
  static uint unit_of(uint index) { return index / 2; }
  static uint run_of(uint index) { return index % 2; }
  static void unpack_16(Row row, uint index, uint k, thread float4 (&q)[4], thread float& scale,
                        thread float& minimum) {
    const uint unit = unit_of(index);
    unpack(row, load(row, unit, k), unit, run_of(index), k, q, scale, minimum);
  }
};
