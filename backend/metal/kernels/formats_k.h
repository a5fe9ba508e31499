// The K formats: 256 weights in a block, with one or two halves for all of them and a small whole
// number as scale (and minimum) for every 16 or 32. A block is eight units; the two runs of a unit
// lie in the same 16 bytes, 32 or 64 weights apart.
//
//   q2_k   84 bytes: 16 scale bytes (scale low, minimum high), 64 bytes of two bits, half d, dmin
//   q3_k  110 bytes: 32 bytes of third bits, 64 bytes of two bits, 12 bytes of 6-bit scales, half d
//   q4_k  144 bytes: half d, dmin, 12 bytes of 6-bit scales and minima, 128 nibble bytes
//   q5_k  176 bytes: half d, dmin, 12 bytes of scales and minima, 32 of fifth bits, 128 of nibbles
//   q6_k  210 bytes: 128 bytes of low nibbles, 64 bytes of two upper bits, 16 int8 scales, half d
// Blocks of 144 and 176 bytes lie at multiples of 16, those of 84 of four, the others of two.
// d, a scale and a code multiply exactly; so do dmin and a minimum.
#pragma once

#include "metal/kernels/formats.h"

// Bytes that hold four weights 32 apart (q2_k, q3_k): unit g of a block takes bits 4 p, 4 p + 1 for
// its first run and the two above for its second, p = g / 2 % 2, of 16 bytes that (g / 4, g % 2)
// choose.
struct TwoBitLayout {
  static constant constexpr uint kWeights = 256, kUnits = 8;
  static uint position(uint g, uint run, uint piece) { return 16 * sixteen_of(g, run) + 4 * piece; }
  static uint unit_of(uint sixteen) { return sixteen / 8 * 4 + sixteen % 8 / 4 * 2 + sixteen % 2; }
  static uint run_of(uint sixteen) { return sixteen / 2 % 2; }
  // Which sixteen a run is.
  static uint sixteen_of(uint g, uint run) { return g / 4 * 8 + (g / 2 % 2 * 2 + run) * 2 + g % 2; }
};

struct Q2_KCodec {
  static constant constexpr uint kBytes = 84;
  static constant constexpr bool kMinimum = true;
  struct Raw {
    uint4 low;
    uint scales[2];
    float d, dmin;
  };
  static Raw load(device const uchar* b, uint g) {
    Raw raw;
    raw.low = load_words_4(b + 16 + g / 4 * 32 + g % 2 * 16);
    raw.scales[0] = b[TwoBitLayout::sixteen_of(g, 0)];
    raw.scales[1] = b[TwoBitLayout::sixteen_of(g, 1)];
    raw.d = load_half(b + 80);
    raw.dmin = load_half(b + 82);
    return raw;
  }
  static void unpack(Raw raw, uint g, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float& minimum) {
    const uint shift = g / 2 % 2 * 4 + 2 * run;
    for (uint i = 0; i < 4; ++i) q[i] = bytes_less(byte_fields(raw.low[i], shift, 3u), 0.0f);
    scale = raw.d * float(either(raw.scales, run) & 15u);
    minimum = -(raw.dmin * float(either(raw.scales, run) >> 4));
  }
};
using Q2_K = Blocks<Q2_KCodec, TwoBitLayout>;

struct Q3_KCodec {
  static constant constexpr uint kBytes = 110;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 low, high;
    float scales[2];
  };
  // Scale j of 16, 32 too large. Low nibbles: bytes 0-7, the first eight scales below the last
  // eight; upper two bits: bytes 8-11, four scales that lie 4 apart in each.
  static uint scale_code(device const uchar* s, uint j) {
    return (s[j % 8] >> (j / 8 * 4) & 15u) | (s[8 + j % 4] >> (j / 4 * 2) & 3u) << 4;
  }
  static Raw load(device const uchar* b, uint g) {
    const float d = load_half(b + 108);
    Raw raw;
    raw.low = load_words(b + 32 + g / 4 * 32 + g % 2 * 16);
    raw.high = load_words(b + g % 2 * 16);
    raw.scales[0] = d * code_less(scale_code(b + 96, TwoBitLayout::sixteen_of(g, 0)), 32.0f);
    raw.scales[1] = d * code_less(scale_code(b + 96, TwoBitLayout::sixteen_of(g, 1)), 32.0f);
    return raw;
  }
  static void unpack(Raw raw, uint g, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    const uint shift = g / 2 % 2 * 4 + 2 * run;
    const uint bit = g / 2 * 2 + run;  // of the third bits: one for every 32 weights
    for (uint i = 0; i < 4; ++i)
      q[i] = bytes_less(byte_fields(raw.low[i], shift, 3u) | byte_fields(raw.high[i], bit, 1u) << 2,
                        4.0f);
    scale = either(raw.scales, run);
  }
};
using Q3_K = Blocks<Q3_KCodec, TwoBitLayout>;

// Nibble bytes of 32 that hold 64 weights, the first 32 in the low nibbles (q4_k, q5_k): unit g
// takes 16 of them.
struct NibbleLayout {
  static constant constexpr uint kWeights = 256, kUnits = 8;
  static uint position(uint g, uint run, uint piece) {
    return g / 2 * 64 + run * 32 + g % 2 * 16 + 4 * piece;
  }
  static uint unit_of(uint sixteen) { return sixteen / 4 * 2 + sixteen % 2; }
  static uint run_of(uint sixteen) { return sixteen / 2 % 2; }
};

// Eight scales and eight minima of six bits in 12 bytes. Those of the first four sub-blocks are the
// low bits of bytes 0-3 and 4-7; those of the last four have their low nibbles in bytes 8-11, scale
// below minimum, and their upper two bits above the first four's. Here are those of two neighbours,
// the even sub-block `j` and j + 1, times d and -dmin.
struct SixBitScales {
  float scale[2], minimum[2];
};
inline SixBitScales six_bit_scales(uint4 head, uint j) {
  const float d = float(as_type<half2>(head.x).x);
  const float dmin = float(as_type<half2>(head.x).y);
  SixBitScales s;
  for (uint run = 0; run < 2; ++run) {
    const uint shift = (j % 4 + run) * 8;
    const uint first = head.y >> shift & 255u;
    const uint second = head.z >> shift & 255u;
    const uint third = head.w >> shift & 255u;
    const uint scale = j < 4 ? first & 63u : (third & 15u) | first >> 6 << 4;
    const uint minimum = j < 4 ? second & 63u : third >> 4 | second >> 6 << 4;
    s.scale[run] = d * float(scale);
    s.minimum[run] = -(dmin * float(minimum));
  }
  return s;
}

struct Q4_KCodec {
  static constant constexpr uint kBytes = 144;
  static constant constexpr bool kMinimum = true;
  struct Raw {
    uint4 nibbles;
    SixBitScales scales;
  };
  static Raw load(device const uchar* b, uint g) {
    return Raw{load_words_16(b + 16 + 16 * g), six_bit_scales(load_words_16(b), g / 2 * 2)};
  }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float& minimum) {
    for (uint i = 0; i < 4; ++i) q[i] = bytes_less(byte_fields(raw.nibbles[i], 4 * run, 15u), 0.0f);
    scale = either(raw.scales.scale, run);
    minimum = either(raw.scales.minimum, run);
  }
};
using Q4_K = Blocks<Q4_KCodec, NibbleLayout>;

struct Q5_KCodec {
  static constant constexpr uint kBytes = 176;
  static constant constexpr bool kMinimum = true;
  struct Raw {
    uint4 nibbles, high;
    SixBitScales scales;
  };
  static Raw load(device const uchar* b, uint g) {
    return Raw{load_words_16(b + 48 + 16 * g), load_words_16(b + 16 + 16 * (g % 2)),
               six_bit_scales(load_words_16(b), g / 2 * 2)};
  }
  static void unpack(Raw raw, uint g, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float& minimum) {
    const uint bit = g / 2 * 2 + run;
    for (uint i = 0; i < 4; ++i)
      q[i] = bytes_less(
          byte_fields(raw.nibbles[i], 4 * run, 15u) | byte_fields(raw.high[i], bit, 1u) << 4, 0.0f);
    scale = either(raw.scales.scale, run);
    minimum = either(raw.scales.minimum, run);
  }
};
using Q5_K = Blocks<Q5_KCodec, NibbleLayout>;

// The low nibbles lie otherwise than in q4_k: 64 bytes hold 128 weights, low nibbles first. So a
// unit's runs are 64 weights apart; their upper bits share a byte too.
struct WideNibbleLayout {
  static constant constexpr uint kWeights = 256, kUnits = 8;
  static uint position(uint g, uint run, uint piece) {
    return g / 4 * 128 + run * 64 + g % 4 * 16 + 4 * piece;
  }
  static uint unit_of(uint sixteen) { return sixteen / 8 * 4 + sixteen % 4; }
  static uint run_of(uint sixteen) { return sixteen / 4 % 2; }
};

struct Q6_KCodec {
  static constant constexpr uint kBytes = 210;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 low, high;
    float scales[2];
  };
  static Raw load(device const uchar* b, uint g) {
    const uint h = g / 4, p = g % 4;
    const float d = load_half(b + 208);
    device const char* scales = reinterpret_cast<device const char*>(b + 192);
    Raw raw;
    raw.low = load_words(b + 64 * h + 16 * p);
    raw.high = load_words(b + 128 + 32 * h + 16 * (p % 2));
    raw.scales[0] = d * float(scales[8 * h + p]);
    raw.scales[1] = d * float(scales[8 * h + 4 + p]);
    return raw;
  }
  static void unpack(Raw raw, uint g, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    const uint shift = g % 4 / 2 * 2 + 4 * run;
    for (uint i = 0; i < 4; ++i)
      q[i] = bytes_less(
          byte_fields(raw.low[i], 4 * run, 15u) | byte_fields(raw.high[i], shift, 3u) << 4, 32.0f);
    scale = either(raw.scales, run);
  }
};
using Q6_K = Blocks<Q6_KCodec, WideNibbleLayout>;
