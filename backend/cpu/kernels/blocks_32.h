// Blocks of 32 weights as ggml's block_q4_0 to block_q8_0 lay them out. Of nibbles, weight i < 16 is the
// low one of byte i, weight i + 16 the high one.
#pragma once

#include <stdint.h>

namespace akunu::cpu {

struct BlockQ4_0 {
  uint16_t d;  // a half
  uint8_t nibbles[16];
};
struct BlockQ4_1 {
  uint16_t d, m;
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
struct BlockQ8_0 {
  uint16_t d;
  int8_t codes[32];
};
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34);

}  // namespace akunu::cpu
