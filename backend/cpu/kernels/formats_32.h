// Q4_1, Q5_0 and Q5_1: 32 weights in a block, as ggml's block_q4_1, block_q5_0 and block_q5_1 lay
// them out. Weight i < 16 is the low nibble of byte i, weight i + 16 the high one.
#pragma once

#include "cpu/kernels/formats_blocks.h"

namespace akunu::cpu {

struct BlockQ4_1 {
  uint16_t d, m;  // halves
  uint8_t nibbles[16];
};
struct BlockQ5_0 {
  uint16_t d;
  uint8_t high[4];  // bit i is bit 4 of weight i
  uint8_t nibbles[16];
};
struct BlockQ5_1 {
  uint16_t d, m;
  uint8_t high[4];
  uint8_t nibbles[16];
};
static_assert(sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);

static inline uint32_t code4(const uint8_t (&nibbles)[16], uint32_t i) {
  return i < 16 ? nibbles[i] & 15u : nibbles[i - 16] >> 4;
}
static inline uint32_t code5(const uint8_t (&nibbles)[16], const uint8_t (&high)[4], uint32_t i) {
  return code4(nibbles, i) | (high[i / 8] >> i % 8 & 1u) << 4;
}

// x = d * code + m: the product is exact, so one rounding.
template <class Isa>
struct Q4_1 : Blocks<Q4_1<Isa>, BlockQ4_1, 32> {
  static constexpr int32_t kFormat = 3;

  static float weight(const BlockQ4_1& block, uint32_t i) {
    const float code = static_cast<float>(code4(block.nibbles, i));
    return Isa::half_to_float(block.d) * code + Isa::half_to_float(block.m);
  }
};

// x = d * (code - 16), exact.
template <class Isa>
struct Q5_0 : Blocks<Q5_0<Isa>, BlockQ5_0, 32> {
  static constexpr int32_t kFormat = 6;

  static float weight(const BlockQ5_0& block, uint32_t i) {
    const int32_t code = static_cast<int32_t>(code5(block.nibbles, block.high, i)) - 16;
    return Isa::half_to_float(block.d) * static_cast<float>(code);
  }
};

// x = d * code + m: one rounding.
template <class Isa>
struct Q5_1 : Blocks<Q5_1<Isa>, BlockQ5_1, 32> {
  static constexpr int32_t kFormat = 7;

  static float weight(const BlockQ5_1& block, uint32_t i) {
    const float code = static_cast<float>(code5(block.nibbles, block.high, i));
    return Isa::half_to_float(block.d) * code + Isa::half_to_float(block.m);
  }
};

}  // namespace akunu::cpu
