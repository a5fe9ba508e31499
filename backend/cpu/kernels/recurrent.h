// What the kernels of recurrent layers share: how they cut a head's state, and functions of single numbers.
#pragma once

#include "cpu/kernels/math.h"

namespace akunu::cpu {

// Rows of a state that a slice moves on, a multiple of kRowsTogether: old and new ones stay in L1.
constexpr uint32_t kStateRows = 16;
constexpr uint32_t kRowsTogether = 4;

template <class Isa>
static inline float first_lane(typename Isa::Vector v) {
  float lane;
  Isa::store(&lane, v, 1);
  return lane;
}

// log(1 + e^x): 1 + e would lose the digits of a small e.
template <class Isa>
static inline typename Isa::Vector softplus_lanes(typename Isa::Vector x) {
  const auto e = exp<Isa>(Isa::subtract(Isa::zero(), Isa::absolute(x)));
  const auto small = log_near_one<Isa>(e);
  const auto large = log<Isa>(Isa::add(e, Isa::broadcast(1.0f)));
  const auto rest = Isa::select_less(e, Isa::broadcast(0.375f), small, large);
  // Written so that a NaN stays one.
  return Isa::select_less(x, Isa::zero(), rest, Isa::add(x, rest));
}
template <class Isa>
static inline float softplus(float x) {
  return first_lane<Isa>(softplus_lanes<Isa>(Isa::broadcast(x)));
}

}  // namespace akunu::cpu
