// The tuning numbers of an Apple GPU, derived from what it reports.
#pragma once

#include <cstdint>
#include <string>

#include "core/chip.h"

namespace akunu::metal {

// What the system reports of a GPU.
struct GpuFacts {
  std::string name;    // "Apple M4 Pro"
  uint32_t cores = 0;  // 0: not told
  uint64_t working_set_bytes = 0;
};

// Cores of the smallest chip of that name, for systems that do not tell.
uint32_t least_cores(const std::string& name);

// Bytes per second that a GPU with so many cores reads, about: see chip.cpp.
double memory_bandwidth(uint32_t cores);

// Without `level` and `reason`, which are the device's.
ChipConfig describe_chip(const GpuFacts& facts);

}  // namespace akunu::metal
