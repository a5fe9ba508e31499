// What gated_activation does to the gate.
//   silu:      x / (1 + e^-x)
//   gelu_tanh: x/2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3)
#pragma once

#include "core/kernel_params.h"
#include "cpu/kernels/math.h"

namespace akunu::cpu {

template <class Isa>
static inline typename Isa::Vector silu(typename Isa::Vector x) {
  const auto one = Isa::broadcast(1.0f);
  return Isa::divide(x, Isa::add(one, exp<Isa>(Isa::subtract(Isa::zero(), x))));
}

// The logistic form of the same function: 1 + tanh loses all its digits for large negative x.
template <class Isa>
static inline typename Isa::Vector gelu_tanh(typename Isa::Vector x) {
  constexpr float kMinusTwoRoot = -0x1.988454p+0f;  // -2 sqrt(2 / pi)
  const auto cubic =
      Isa::multiply_add(Isa::multiply(x, x), Isa::broadcast(0.044715f), Isa::broadcast(1.0f));
  const auto exponent = Isa::multiply(Isa::multiply(x, cubic), Isa::broadcast(kMinusTwoRoot));
  return Isa::divide(x, Isa::add(Isa::broadcast(1.0f), exp<Isa>(exponent)));
}

// Calls use(function) with the function of kActivation... `activation`.
template <class Isa, class Use>
static inline void with_activation(uint32_t activation, const Use& use) {
  if (activation == kActivationSilu)
    use([](typename Isa::Vector x) { return silu<Isa>(x); });
  else
    use([](typename Isa::Vector x) { return gelu_tanh<Isa>(x); });
}

}  // namespace akunu::cpu
