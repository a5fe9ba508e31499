// The Gumbel noise of a token: -ln(-ln u), u = ((word >> 8) + 0.5) * 2^-24 of word 0 of Philox.
#pragma once

#include "cpu/kernels/math.h"
#include "cpu/kernels/philox.h"

namespace akunu::cpu {

constexpr float kLargestNoise = 17.5f;  // of u = 1 - 2^-25: 25 ln 2 = 17.33

// The noise of eight words. Between 1/2 and 1, u has 25 bits and no float of its own; 1 - u has
// one, and near 1 it is what the logarithm needs.
template <class Isa>
static inline typename Isa::Vector gumbel(const uint32_t (&words)[8]) {
  float from_zero[8], from_one[8];
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t step = words[i] >> 8;
    from_zero[i] = (static_cast<float>(step) + 0.5f) * 0x1p-24f;
    from_one[i] = (static_cast<float>(0xffffffu - step) + 0.5f) * 0x1p-24f;
  }
  const auto u = Isa::load(from_zero);
  const auto minus = Isa::subtract(Isa::zero(), Isa::load(from_one));
  const auto logarithm =
      Isa::select_less(u, Isa::broadcast(0x1.6a09e6p-1f), log<Isa>(u), log_near_one<Isa>(minus));
  return Isa::subtract(Isa::zero(), log<Isa>(Isa::subtract(Isa::zero(), logarithm)));
}

}  // namespace akunu::cpu
