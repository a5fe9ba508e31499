// The tuning numbers of an NVIDIA GPU, derived from what it reports.
#pragma once

#include <cstdint>
#include <string>

#include "core/chip.h"

namespace akunu::cuda {

// What the driver reports of a GPU.
struct GpuFacts {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  uint32_t multiprocessors = 0;
  uint32_t clock_kilohertz = 0;
  uint64_t memory_bytes = 0;
  uint32_t memory_clock_kilohertz = 0;  // 0 where a driver does not tell
  uint32_t memory_bus_bits = 0;         // likewise
};

// Bytes per second that the memory gives at best; a guess from the multiprocessors where the driver does not
// tell.
double memory_bandwidth(const GpuFacts& facts);

// Without `level` and `reason`, which are the device's.
ChipConfig describe_chip(const GpuFacts& facts);

}  // namespace akunu::cuda
