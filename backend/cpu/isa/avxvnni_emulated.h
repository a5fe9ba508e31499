// The level `avxvnni-emulated`: `avxvnni` on a processor that has those instructions in the encoding of AVX-512
// only. For tests (AKUNU_EMULATED_LEVELS); it is as fast.
#pragma once

#include "cpu/isa/avxvnni.h"

namespace akunu::cpu {

struct AvxVnniEmulated : VnniWords<AvxVnniEmulated> {
  static constexpr bool kVexEncoded = false;
};

}  // namespace akunu::cpu
