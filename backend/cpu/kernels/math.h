// Elementary functions on vectors, written once over the primitives of an ISA level. The constants
// are minimax fits; tests/kernels/test_gated_activation.py and test_sample.py hold the results to
// the bounds stated here.
//
// 1. What bounds them. Instructions: some twenty for the exponentials of a vector.
// 2. What is done about it. No tables, which would be gathered, and no branches: all lanes take
//    the same path, and special cases are selected.
#pragma once

#include <stdint.h>

namespace akunu::cpu {

// a + x * (b + x * (c + ...)), highest coefficient last.
template <class Isa, uint32_t N>
static inline typename Isa::Vector polynomial(typename Isa::Vector x, const float (&c)[N]) {
  auto sum = Isa::broadcast(c[N - 1]);
  for (uint32_t i = N - 1; i-- > 0;) sum = Isa::multiply_add(sum, x, Isa::broadcast(c[i]));
  return sum;
}

// v * 2^n for whole n of exp's range; in two factors where the level has no instruction, so that results
// underflow gradually.
template <class Isa>
static inline typename Isa::Vector times_power_of_two(typename Isa::Vector v,
                                                      typename Isa::Vector n) {
  if constexpr (requires { Isa::scale(v, n); }) {
    return Isa::scale(v, n);
  } else {
    const auto half = Isa::round(Isa::multiply(n, Isa::broadcast(0.5f)));
    return Isa::multiply(Isa::multiply(v, Isa::power_of_two(half)),
                         Isa::power_of_two(Isa::subtract(n, half)));
  }
}

// e^x to 2 units in the last place (2^-149 below the normal numbers): x = n ln 2 + r, |r| <= ln 2 /
// 2, then 2^n e^r.
template <class Isa>
static inline typename Isa::Vector exp(typename Isa::Vector x) {
  constexpr float kLog2E = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e4p-1f;  // 16 bits: its product with n is exact
  constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  constexpr float kSeries[] = {0x1.fffffcp-2f, 0x1.55548ap-3f, 0x1.555916p-5f, 0x1.123fc8p-7f,
                               0x1.6a1a6ep-10f};
  // Below -104 the result rounds to 0, above 89 to infinity. A NaN is the second argument, and
  // stays.
  x = Isa::minimum(Isa::broadcast(89.0f), Isa::maximum(Isa::broadcast(-104.0f), x));
  const auto n = Isa::round(Isa::multiply(x, Isa::broadcast(kLog2E)));
  auto r = Isa::multiply_add(n, Isa::broadcast(-kLn2High), x);
  r = Isa::multiply_add(n, Isa::broadcast(-kLn2Low), r);
  const auto series = Isa::multiply_add(Isa::multiply(r, r), polynomial<Isa>(r, kSeries), r);
  return times_power_of_two<Isa>(Isa::add(series, Isa::broadcast(1.0f)), n);
}

// 2^x to 2e-7 of it from -90 on, and as for -90 below: beside the largest weight of a softmax, 1, that is nothing,
// and its products with scales are normal numbers; subnormal ones take a hundred cycles each. A NaN
// stays. The polynomial is a minimax fit of 2^f on [-1/2, 1/2] with the value 1 at 0.
template <class Isa>
static inline typename Isa::Vector exp2(typename Isa::Vector x) {
  constexpr float kSeries[] = {1.0f,           0x1.62e42ap-1f, 0x1.ebf9bcp-3f,
                               0x1.c6b752p-5f, 0x1.3cea82p-7f, 0x1.5bba06p-10f};
  x = Isa::maximum(Isa::broadcast(-90.0f), x);
  const auto n = Isa::round(x);
  const auto power = polynomial<Isa>(Isa::subtract(x, n), kSeries);
  if constexpr (requires { Isa::scale(power, n); })
    return Isa::scale(power, n);
  else
    return Isa::multiply(power, Isa::power_of_two(n));
}

// tanh x to 3 units in the last place: an odd polynomial near 0, else (1 - e) / (1 + e) with
// e = e^(-2|x|).
template <class Isa>
static inline typename Isa::Vector tanh(typename Isa::Vector x) {
  constexpr float kSeries[] = {-0x1.555532p-2f, 0x1.110726p-3f, -0x1.b83c58p-5f, 0x1.52268ep-6f,
                               -0x1.75e196p-8f};
  const auto one = Isa::broadcast(1.0f);
  const auto size = Isa::absolute(x);
  const auto square = Isa::multiply(x, x);
  const auto near =
      Isa::multiply_add(Isa::multiply(x, square), polynomial<Isa>(square, kSeries), x);
  const auto e = exp<Isa>(Isa::multiply(size, Isa::broadcast(-2.0f)));
  const auto far = Isa::divide(Isa::subtract(one, e), Isa::add(one, e));
  return Isa::select_less(size, Isa::broadcast(0.625f), near, Isa::copy_sign(far, x));
}

// ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)].
template <class Isa>
static inline typename Isa::Vector log_near_one(typename Isa::Vector f) {
  constexpr float kSeries[] = {0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a4b6p-3f,
                               -0x1.555c4ep-3f, 0x1.233766p-3f,  -0x1.fc220ap-4f,
                               0x1.e6f096p-4f,  -0x1.de3c18p-4f, 0x1.145750p-4f};
  const auto square = Isa::multiply(f, f);
  auto rest = Isa::multiply(Isa::multiply(f, square), polynomial<Isa>(f, kSeries));
  rest = Isa::multiply_add(square, Isa::broadcast(-0.5f), rest);
  return Isa::add(f, rest);
}

// ln x for normal x > 0, to 3 units in the last place of the larger of its two parts, f and n ln 2:
// x = 2^n (1 + f).
template <class Isa>
static inline typename Isa::Vector log(typename Isa::Vector x) {
  constexpr float kSqrt2 = 0x1.6a09e6p+0f;
  const auto one = Isa::broadcast(1.0f);
  const auto m = Isa::mantissa(x);
  const auto n = Isa::exponent(x);
  const auto root = Isa::broadcast(kSqrt2);
  const auto f =
      Isa::subtract(Isa::select_less(m, root, m, Isa::multiply(m, Isa::broadcast(0.5f))), one);
  const auto whole = Isa::select_less(m, root, n, Isa::add(n, one));
  const auto low = Isa::multiply_add(whole, Isa::broadcast(0x1.7f7d1cp-20f), log_near_one<Isa>(f));
  return Isa::multiply_add(whole, Isa::broadcast(0x1.62e4p-1f), low);
}

}  // namespace akunu::cpu
