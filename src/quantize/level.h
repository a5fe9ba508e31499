// The arithmetic of this folder is compiled once for every CPU and, on x86-64, once more for those with AVX2
// (src/CMakeLists.txt). Each copy lies in a namespace of its own, so that the linker keeps both apart. They make
// the same bytes: sums have the same order in both.
#pragma once

#ifndef AKUNU_QUANTIZE_LEVEL
#define AKUNU_QUANTIZE_LEVEL portable
#endif
