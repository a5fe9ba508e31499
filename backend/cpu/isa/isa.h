// The ISA level that this translation unit is compiled for: kernel files are compiled once per
// level, which CMake names with its header and its type. Everything else asks the type.
#pragma once

#include AKUNU_ISA_HEADER

namespace akunu::cpu {
using ThisIsa = AKUNU_ISA;
}
