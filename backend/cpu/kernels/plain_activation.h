// What `activate` and `gated_activation` compute besides the functions of fused operations.
#pragma once

#include "cpu/kernels/gate.h"

namespace akunu::cpu {

// x times the normal distribution's share below x: x / 2 erfc(-x / sqrt 2), the rational fit of erfc
// with a relative error of 1.2e-7 (Press et al., Numerical Recipes, 6.2.2).
template <class Isa>
static inline typename Isa::Vector gelu(typename Isa::Vector x) {
  constexpr float kFit[] = {-1.26551223f, 1.00002368f,  0.37409196f, 0.09678418f,  -0.18628806f,
                            0.27886807f,  -1.13520398f, 1.48851587f, -0.82215223f, 0.17087277f};
  const auto one = Isa::broadcast(1.0f);
  const auto z = Isa::multiply(Isa::absolute(x), Isa::broadcast(0x1.6a09e6p-1f));  // sqrt(1 / 2)
  const auto t = Isa::divide(one, Isa::multiply_add(z, Isa::broadcast(0.5f), one));
  const auto exponent = Isa::subtract(polynomial<Isa>(t, kFit),
                                      Isa::multiply(Isa::multiply(x, x), Isa::broadcast(0.5f)));
  const auto tail = Isa::multiply(Isa::multiply(t, exp<Isa>(exponent)), Isa::broadcast(0.5f));
  return Isa::multiply(x, Isa::select_less(x, Isa::zero(), tail, Isa::subtract(one, tail)));
}

// Calls use(function) with the function of kActivation... `activation`, with one argument.
template <class Isa, class Use>
static inline void with_plain_activation(uint32_t activation, const Use& use) {
  using Vector = typename Isa::Vector;
  if (activation == kActivationGelu)
    use([](Vector x) { return gelu<Isa>(x); });
  else if (activation == kActivationTanh)
    use([](Vector x) { return tanh<Isa>(x); });
  else if (activation == kActivationSigmoid)
    use([](Vector x) {
      const auto one = Isa::broadcast(1.0f);
      return Isa::divide(one, Isa::add(one, exp<Isa>(Isa::subtract(Isa::zero(), x))));
    });
  else if (activation == kActivationQuickGelu)
    use([](Vector x) {
      const auto e = exp<Isa>(Isa::multiply(x, Isa::broadcast(-1.702f)));
      return Isa::divide(x, Isa::add(Isa::broadcast(1.0f), e));
    });
  else if (activation == kActivationNone)
    use([](Vector x) { return x; });
  else if (activation == kActivationReluSquared)
    use([](Vector x) {
      return Isa::select_less(x, Isa::zero(), Isa::zero(), Isa::multiply(x, x));
    });
  else
    with_activation<Isa>(activation, use);
}

template <class Isa>
[[gnu::noinline]] static typename Isa::Vector plain_activation(uint32_t activation,
                                                               typename Isa::Vector x) {
  with_plain_activation<Isa>(activation, [&](const auto& function) { x = function(x); });
  return x;
}

// The same for a gate. Functions that few models have share one: for `use` with each of them, the kernels of a level
// took seconds more to compile.
template <class Isa, class Use>
static inline void with_gate_activation(uint32_t activation, const Use& use) {
  if (activation == kActivationSilu || activation == kActivationGeluTanh)
    with_activation<Isa>(activation, use);
  else
    use([=](typename Isa::Vector x) { return plain_activation<Isa>(activation, x); });
}

}  // namespace akunu::cpu
