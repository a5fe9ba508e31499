// The ISA level that this translation unit is compiled for. Kernel files are compiled once per
// level with one of these defines; everything else asks the type.
#pragma once

#if defined(AKUNU_ISA_AVX2)
#include "cpu/isa/avx2.h"
namespace akunu::cpu {
using ThisIsa = Avx2;
}
#elif defined(AKUNU_ISA_GENERIC)
#include "cpu/isa/generic.h"
namespace akunu::cpu {
using ThisIsa = Generic;
}
#else
#error "define AKUNU_ISA_GENERIC or AKUNU_ISA_AVX2"
#endif
