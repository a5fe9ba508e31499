// The level `avxvnni-emulated`: `avxvnni` on a processor that has those instructions in the
// encoding of AVX-512 only. For tests (AKUNU_CPU_LEVELS=all); it is as fast.
#pragma once

#include "cpu/isa/avxvnni.h"

namespace akunu::cpu {

template <class Level>
struct EvexProducts {
  static __m256i add_bytes(__m256i sum, __m256i codes, __m256i four) {
    asm("vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(codes), "x"(four));
    return sum;
  }
  static __m256i add_pairs(__m256i sum, __m256i a, __m256i b) {
    asm("vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
  }
};

struct AvxVnniEmulated : VnniPrimitives<AvxVnniEmulated, EvexProducts<AvxVnniEmulated>> {};

}  // namespace akunu::cpu
