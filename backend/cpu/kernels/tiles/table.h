// The kernels of a level with a matrix unit; what is not among them is the vector level's below it.
#pragma once

#include "cpu/kernels/table.h"

namespace akunu::cpu {

struct Avx512;

// A list per family, as in kernels/table.h.
template <class Isa>
struct TileFamilies {
  static KernelList gated_matmul();
  static KernelList attention();
  static bool find_matmul(const KernelKey& request, Kernel& kernel);
};

}  // namespace akunu::cpu
