// The level `generic` with what levels with an FMA have: a multiply_add rounds once, and products of pairs of
// int16. So it has to give their bits, and isa_levels.cpp compares them. Slow, and for tests only.
#pragma once

#include "cpu/isa/generic.h"

namespace akunu::cpu {

struct FusedPolicy : MatmulPolicy {
  static constexpr uint32_t kInt16Rows = 4;
};

struct FusedColumns : GenericColumns {
  using Policy = FusedPolicy;

  static Floats multiply_add(Floats a, Floats b, Floats c) {
    for (uint32_t i = 0; i < kCount; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
  }

  static Ints add_pairs(Ints sum, Ints a, Ints b) {
    const auto low = [](Ints v) { return shift_left<16>(v) >> 16; };
    return sum + low(a) * low(b) + (a >> 16) * (b >> 16);
  }
};

struct Fused : Generic {
  using Columns = FusedColumns;
  using Wide = Fused;

  static Vector multiply_add(Vector a, Vector b, Vector c) {
    return {FusedColumns::multiply_add(a.low, b.low, c.low),
            FusedColumns::multiply_add(a.high, b.high, c.high)};
  }
};

}  // namespace akunu::cpu
