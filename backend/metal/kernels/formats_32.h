// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: a unit is a block. Of nibbles, weight i < 16 is the low one of
// byte i, weight i + 16 the high one.
//
//   q4_0  18 bytes: half d, 16 nibble bytes                              d * (code - 8)
//   q4_1  20 bytes: half d, half m, 16 nibble bytes                      d * code + m
//   q5_0  22 bytes: half d, 32 bits (bit 4 of weight i), 16 nibble bytes  d * (code - 16)
//   q5_1  24 bytes: half d, half m, 32 bits, 16 nibble bytes             d * code + m
//   q8_0  34 bytes: half d, 32 int8                                      d * code
// Blocks of 20 and 24 bytes lie at multiples of four, the others of two.
#pragma once

#include "metal/kernels/formats.h"

struct Q4_0Codec {
  static constant constexpr uint kBytes = 18;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 nibbles;
    float d;
  };
  static Raw load(device const uchar* b, uint) { return Raw{load_words(b + 2), load_half(b)}; }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    for (uint i = 0; i < 4; ++i) q[i] = bytes_less(byte_fields(raw.nibbles[i], 4 * run, 15u), 8.0f);
    scale = raw.d;
  }
};
using Q4_0 = Blocks<Q4_0Codec, Straight>;

struct Q4_1Codec {
  static constant constexpr uint kBytes = 20;
  static constant constexpr bool kMinimum = true;
  struct Raw {
    uint4 nibbles;
    float d, m;
  };
  static Raw load(device const uchar* b, uint) {
    return Raw{load_words_4(b + 4), load_half(b), load_half(b + 2)};
  }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float& minimum) {
    for (uint i = 0; i < 4; ++i) q[i] = bytes_less(byte_fields(raw.nibbles[i], 4 * run, 15u), 0.0f);
    scale = raw.d;
    minimum = raw.m;
  }
};
using Q4_1 = Blocks<Q4_1Codec, Straight>;

// Four neighbouring bits of `bits`, from `first` on, as bit 4 of four codes.
inline uint4 fifth_bits(uint bits, uint first) {
  return uint4(bits >> first, bits >> (first + 1), bits >> (first + 2), bits >> (first + 3)) * 16u &
         16u;
}

struct Q5_0Codec {
  static constant constexpr uint kBytes = 22;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 nibbles;
    uint high;
    float d;
  };
  static Raw load(device const uchar* b, uint) {
    return Raw{load_words(b + 6), load_word(b + 2), load_half(b)};
  }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    for (uint i = 0; i < 4; ++i)
      q[i] = codes_less(
          fields_of(raw.nibbles[i], 4 * run, 15u) | fifth_bits(raw.high, 16 * run + 4 * i), 16.0f);
    scale = raw.d;
  }
};
using Q5_0 = Blocks<Q5_0Codec, Straight>;

struct Q5_1Codec {
  static constant constexpr uint kBytes = 24;
  static constant constexpr bool kMinimum = true;
  struct Raw {
    uint4 nibbles;
    uint high;
    float d, m;
  };
  static Raw load(device const uchar* b, uint) {
    return Raw{load_words_4(b + 8), *reinterpret_cast<device const uint*>(b + 4), load_half(b),
               load_half(b + 2)};
  }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float& minimum) {
    for (uint i = 0; i < 4; ++i)
      q[i] = codes_less(
          fields_of(raw.nibbles[i], 4 * run, 15u) | fifth_bits(raw.high, 16 * run + 4 * i), 0.0f);
    scale = raw.d;
    minimum = raw.m;
  }
};
using Q5_1 = Blocks<Q5_1Codec, Straight>;

struct Q8_0Codec {
  static constant constexpr uint kBytes = 34;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 codes[2];
    float d;
  };
  static Raw load(device const uchar* b, uint) {
    Raw raw;
    raw.codes[0] = load_words(b + 2);
    raw.codes[1] = load_words(b + 18);
    raw.d = load_half(b);
    return raw;
  }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    // int8 as unsigned numbers that are 128 too large
    const uint4 raised = either(raw.codes, run) ^ 0x80808080u;
    for (uint i = 0; i < 4; ++i) q[i] = bytes_less(raised[i], 128.0f);
    scale = raw.d;
  }
};
using Q8_0 = Blocks<Q8_0Codec, Straight>;
