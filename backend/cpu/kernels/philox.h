// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011).
#pragma once

#include <stdint.h>

namespace akunu::cpu {

// Word 0 of the counters {c0, c1, c2, c3}, one in each lane.
template <class Isa>
static inline typename Isa::Bits philox4x32_10(typename Isa::Bits c0, uint32_t c1, uint32_t c2,
                                               uint32_t c3, uint32_t key0, uint32_t key1) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  using Bits = typename Isa::Bits;
  Bits x0 = c0, x1 = Isa::broadcast_bits(c1), x2 = Isa::broadcast_bits(c2),
       x3 = Isa::broadcast_bits(c3);
  // Unrolled, since then what all lanes have in common is computed once for all vectors of a loop.
#pragma GCC unroll 10
  for (uint32_t round = 0; round < 10; ++round) {
    Bits high0, low0, high1, low1;
    Isa::multiply_wide(x0, kMultiplier0, high0, low0);
    Isa::multiply_wide(x2, kMultiplier1, high1, low1);
    const auto mixed = [](Bits high, Bits x, uint32_t key) {
      return Isa::exclusive_or(high, Isa::exclusive_or(x, Isa::broadcast_bits(key)));
    };
    x0 = mixed(high1, x1, key0);
    x1 = low1;
    x2 = mixed(high0, x3, key1);
    x3 = low0;
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x0;
}

}  // namespace akunu::cpu
