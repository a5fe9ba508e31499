// Loops that do nothing but read, or nothing but multiply: what a core can do at most with the
// primitives of its level. backend/cpu/roofline times them, and benchmarks are stated as shares of
// them. A level with other products gets a member here and its loop in probes.cpp.
#pragma once

#include <stdint.h>

#include <cstddef>

namespace akunu::cpu {

struct Probes {
  // Reads n floats, a multiple of kProbeStep; returns their sum, so that none is left out.
  float (*read)(const float* values, uint64_t n);
  // Multiply `kProbeDepth` numbers of a tile's rows and columns, out of L1, `repeats`
  // times. Both return how many multiplications and additions that was, each counted as one.
  uint64_t (*multiply_floats)(uint64_t repeats, float* result);
  uint64_t (*multiply_bytes)(uint64_t repeats, float* result);
  // Likewise, of int16 in pairs; null where the level does not multiply those.
  uint64_t (*multiply_pairs)(uint64_t repeats, float* result) = nullptr;
  // Likewise, of bf16 on a matrix unit; null where the level has none.
  uint64_t (*multiply_bfloats)(uint64_t repeats, float* result) = nullptr;
};

constexpr uint64_t kProbeStep = 1024;
constexpr uint32_t kProbeDepth = 512;

template <class Isa>
Probes probes();

}  // namespace akunu::cpu
