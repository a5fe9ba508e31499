// Formats whose codes are places in a table of 16 numbers: IQ4_NL, IQ4_XS, MXFP4 and NVFP4.
//
//   iq4_nl   18 bytes: half d, 16 nibble bytes (as in q4_0)              d * value
//   iq4_xs  136 bytes: half d, 8 x 2 upper bits of scales, 4 bytes of
//                      their nibbles, 16 nibble bytes for each 32        d * (scale - 32) * value
//   mxfp4    17 bytes: an exponent, 16 nibble bytes (as in q4_0)         2^(exponent - 128) * value
//   nvfp4    36 bytes: 4 scales (floats of eight bits, E4M3), eight
//                      nibble bytes for each 16 weights                  scale * value
// Blocks of 136 bytes lie at multiples of eight, of 36 of four, of 18 of two; those of 17 anywhere.
#pragma once

#include "core/tables/codes.h"
#include "metal/kernels/formats.h"

inline float4 iq4_values(uint4 places) {
  return float4(float(kIq4Values[places.x]), float(kIq4Values[places.y]),
                float(kIq4Values[places.z]), float(kIq4Values[places.w]));
}
inline float4 fp4_values(uint4 places) {
  return float4(float(kFp4Values[places.x]), float(kFp4Values[places.y]),
                float(kFp4Values[places.z]), float(kFp4Values[places.w]));
}

struct IQ4_NLCodec {
  static constant constexpr uint kBytes = 18;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 nibbles;
    float d;
  };
  static Raw load(device const uchar* b, uint) { return Raw{load_words(b + 2), load_half(b)}; }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    for (uint i = 0; i < 4; ++i) q[i] = iq4_values(fields_of(raw.nibbles[i], 4 * run, 15u));
    scale = raw.d;
  }
};
using IQ4_NL = Blocks<IQ4_NLCodec, Straight>;

// Blocks of several units, one after the other, with their runs.
template <uint kWeights_>
struct StraightUnits {
  static constant constexpr uint kWeights = kWeights_, kUnits = kWeights_ / 32;
  static uint position(uint unit, uint run, uint piece) { return 32 * unit + 16 * run + 4 * piece; }
  static uint unit_of(uint sixteen) { return sixteen / 2; }
  static uint run_of(uint sixteen) { return sixteen % 2; }
};

struct IQ4_XSCodec {
  static constant constexpr uint kBytes = 136;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 nibbles;
    float scale;
  };
  static Raw load(device const uchar* b, uint g) {
    const uint head = load_word(b), low = b[4 + g / 2] >> (4 * (g % 2)) & 15u;
    const uint high = head >> (16 + 2 * g) & 3u;
    return Raw{load_words_4(b + 8 + 16 * g), load_half(b) * code_less(low | high << 4, 32.0f)};
  }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    for (uint i = 0; i < 4; ++i) q[i] = iq4_values(fields_of(raw.nibbles[i], 4 * run, 15u));
    scale = raw.scale;
  }
};
using IQ4_XS = Blocks<IQ4_XSCodec, StraightUnits<256>>;

// A word at any address.
inline uint load_bytes(device const uchar* p) {
  return uint(p[0]) | uint(p[1]) << 8 | uint(p[2]) << 16 | uint(p[3]) << 24;
}

struct MXFP4Codec {
  static constant constexpr uint kBytes = 17;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 nibbles;
    float scale;
  };
  static Raw load(device const uchar* b, uint) {
    const uint e = b[0];
    const uint bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;  // below 2^-126 no exponent
    return Raw{uint4(load_bytes(b + 1), load_bytes(b + 5), load_bytes(b + 9), load_bytes(b + 13)),
               as_type<float>(bits)};
  }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    for (uint i = 0; i < 4; ++i) q[i] = fp4_values(fields_of(raw.nibbles[i], 4 * run, 15u));
    scale = raw.scale;
  }
};
using MXFP4 = Blocks<MXFP4Codec, Straight>;

struct NVFP4Codec {
  static constant constexpr uint kBytes = 36;
  static constant constexpr bool kMinimum = false;
  struct Raw {
    uint4 nibbles;
    float scales[2];
  };
  // A half with the same bits is 2^8 smaller, and values are twice the floats; 0x7f counts as 0.
  static float scale_of(uint bits) {
    if (bits == 0x7fu) return 0.0f;
    return float(as_type<half>(ushort((bits & 0x7fu) << 7))) * 128.0f;
  }
  static Raw load(device const uchar* b, uint g) {
    Raw raw;
    raw.nibbles = load_words_4(b + 4 + 16 * g);
    raw.scales[0] = scale_of(b[2 * g]);
    raw.scales[1] = scale_of(b[2 * g + 1]);
    return raw;
  }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    const uint2 words =
        run == 0 ? uint2(raw.nibbles.x, raw.nibbles.y) : uint2(raw.nibbles.z, raw.nibbles.w);
    for (uint i = 0; i < 2; ++i) {
      q[i] = fp4_values(fields_of(words[i], 0u, 15u));
      q[2 + i] = fp4_values(fields_of(words[i], 4u, 15u));
    }
    scale = either(raw.scales, run);
  }
};
using NVFP4 = Blocks<NVFP4Codec, StraightUnits<64>>;
