// One word of 32 bits for each of eight lanes, as plain numbers: for levels that leave it to the compiler
// to find instructions. The same primitives as in avx2.h. Only sampling uses them.
#pragma once

#include <stdint.h>

namespace akunu::cpu {

template <class Level>
struct PlainBits {
  struct Bits {
    uint32_t lane[8];
  };

  static Bits broadcast_bits(uint32_t x) { return {{x, x, x, x, x, x, x, x}}; }
  static Bits load_bits(const uint32_t* p) {
    Bits v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  // first, first + 1, ...
  static Bits count_from(uint32_t first) {
    Bits v;
    for (uint32_t i = 0; i < 8; ++i) v.lane[i] = first + i;
    return v;
  }
  static uint32_t first_lane(Bits v) { return v.lane[0]; }
  static Bits exclusive_or(Bits a, Bits b) {
    for (uint32_t i = 0; i < 8; ++i) a.lane[i] ^= b.lane[i];
    return a;
  }
  // Both halves of the products with `factor`.
  static void multiply_wide(Bits v, uint32_t factor, Bits& high, Bits& low) {
    for (uint32_t i = 0; i < 8; ++i) {
      const uint64_t product = uint64_t{v.lane[i]} * factor;
      high.lane[i] = static_cast<uint32_t>(product >> 32);
      low.lane[i] = static_cast<uint32_t>(product);
    }
  }
  // The upper 24 bits of each as a number.
  static auto upper_24(Bits v) {
    float lane[8];
    for (uint32_t i = 0; i < 8; ++i) lane[i] = static_cast<float>(v.lane[i] >> 8);
    return Level::load(lane);
  }
};

}  // namespace akunu::cpu
