// The number of a half, by its definition.
#pragma once

#include <cmath>
#include <cstdint>

namespace akunu::test {

inline double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double value = exponent == 0    ? std::ldexp(fraction, -24)
                       : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                        : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

}  // namespace akunu::test
