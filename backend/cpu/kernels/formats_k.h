// The K formats: 256 weights in a super-block, with one or two halves for all of them and a small
// whole number as scale (and minimum) for every 16 or 32. Layouts are those of ggml's block_q2_K
// to block_q6_K.
//
//   j        the sub-block of weight i: i / 16 or i / 32
//   value    d * scale[j] * (code - offset), and where there are minima less dmin * min[j]
//
// Products of d, a scale and a code fit the 24 bits of a float32, and so do those of dmin and a
// minimum: `weight` rounds once where it subtracts, else never.
#pragma once

#include "cpu/kernels/formats_blocks.h"

namespace akunu::cpu {

struct BlockQ2_K {
  uint8_t scales[16];  // a scale in the low nibble, a minimum in the high one
  uint8_t low[64];
  uint16_t d, dmin;
};
struct BlockQ3_K {
  uint8_t high[32];  // bit j of byte i: bit 2 of weight 32 j + i
  uint8_t low[64];
  uint8_t scales[12];
  uint16_t d;
};
struct BlockQ4_K {
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t nibbles[128];
};
struct BlockQ5_K {
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t high[32];  // bit j of byte i: bit 4 of weight 32 j + i
  uint8_t nibbles[128];
};
struct BlockQ6_K {
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint16_t d;
};
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 &&
              sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

// Weight i of fields of two bits: 32 bytes hold 128 weights, each byte four that lie 32 apart.
static inline uint32_t two_bits(const uint8_t (&fields)[64], uint32_t i) {
  return fields[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3u;
}
// Weight i of nibbles: 32 bytes hold 64 weights, the first 32 in the low nibbles.
static inline uint32_t nibble(const uint8_t (&nibbles)[128], uint32_t i) {
  return nibbles[i / 64 * 32 + i % 32] >> i % 64 / 32 * 4 & 15u;
}
// Bit j of byte i, for weight 32 j + i.
static inline uint32_t one_bit(const uint8_t (&bits)[32], uint32_t i) {
  return bits[i % 32] >> i / 32 & 1u;
}

struct ScaleAndMinimum {
  uint32_t scale, minimum;
};
// Eight scales and eight minima of six bits (Q4_K, Q5_K). Those of the first four sub-blocks are the
// low bits of bytes 0-3 and 4-7; those of the last four have their low nibbles in bytes 8-11, scale
// below minimum, and their upper two bits above the first four's.
static inline ScaleAndMinimum scale_and_minimum(const uint8_t (&s)[12], uint32_t j) {
  if (j < 4) return {s[j] & 63u, s[4 + j] & 63u};
  return {(s[4 + j] & 15u) | static_cast<uint32_t>(s[j - 4] >> 6 << 4),
          static_cast<uint32_t>(s[4 + j] >> 4 | s[j] >> 6 << 4)};
}

// 16 scales of six bits, 32 too large (Q3_K). Low nibbles: bytes 0-7, the first eight scales below
// the last eight; upper two bits: bytes 8-11, four scales that lie 4 apart in each.
static inline int32_t scale_q3_k(const uint8_t (&s)[12], uint32_t j) {
  const int32_t low = s[j % 8] >> j / 8 * 4 & 15;
  const int32_t high = s[8 + j % 4] >> j / 4 * 2 & 3;
  return (low | high << 4) - 32;
}

template <class Isa>
struct Q2_K : Blocks<Q2_K<Isa>, BlockQ2_K, 256> {
  static constexpr int32_t kFormat = 10;

  static float weight(const BlockQ2_K& block, uint32_t i) {
    const uint8_t s = block.scales[i / 16];
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s & 15);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s >> 4);
    return scale * static_cast<float>(two_bits(block.low, i)) - minimum;
  }
};

template <class Isa>
struct Q3_K : Blocks<Q3_K<Isa>, BlockQ3_K, 256> {
  static constexpr int32_t kFormat = 11;

  static float weight(const BlockQ3_K& block, uint32_t i) {
    const uint32_t code = two_bits(block.low, i) | one_bit(block.high, i) << 2;
    const float scale =
        Isa::half_to_float(block.d) * static_cast<float>(scale_q3_k(block.scales, i / 16));
    return scale * static_cast<float>(static_cast<int32_t>(code) - 4);
  }
};

template <class Isa>
struct Q4_K : Blocks<Q4_K<Isa>, BlockQ4_K, 256> {
  static constexpr int32_t kFormat = 12;

  static float weight(const BlockQ4_K& block, uint32_t i) {
    const ScaleAndMinimum s = scale_and_minimum(block.scales, i / 32);
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s.scale);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s.minimum);
    return scale * static_cast<float>(nibble(block.nibbles, i)) - minimum;
  }
};

template <class Isa>
struct Q5_K : Blocks<Q5_K<Isa>, BlockQ5_K, 256> {
  static constexpr int32_t kFormat = 13;

  static float weight(const BlockQ5_K& block, uint32_t i) {
    const ScaleAndMinimum s = scale_and_minimum(block.scales, i / 32);
    const uint32_t code = nibble(block.nibbles, i) | one_bit(block.high, i) << 4;
    const float scale = Isa::half_to_float(block.d) * static_cast<float>(s.scale);
    const float minimum = Isa::half_to_float(block.dmin) * static_cast<float>(s.minimum);
    return scale * static_cast<float>(code) - minimum;
  }
};

// The low nibbles lie otherwise than in Q4_K: 64 bytes hold 128 weights, low nibbles first.
template <class Isa>
struct Q6_K : Blocks<Q6_K<Isa>, BlockQ6_K, 256> {
  static constexpr int32_t kFormat = 14;

  static float weight(const BlockQ6_K& block, uint32_t i) {
    const uint32_t low = block.low[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15u;
    const uint32_t code = low | two_bits(block.high, i) << 4;
    const float scale =
        Isa::half_to_float(block.d) * static_cast<float>(int32_t{block.scales[i / 16]});
    return scale * static_cast<float>(static_cast<int32_t>(code) - 32);
  }
};

}  // namespace akunu::cpu
