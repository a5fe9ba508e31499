// What a launch tells its kernel: the same struct as in kernels/launch.cuh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/kernel_params.h"
#include "core/params.h"
#include "core/rows.h"
#include "cuda/driver.h"

namespace akunu::cuda {

constexpr uint32_t kSlots = 31;
constexpr uint32_t kConstants = 8;

struct Arguments {
  CommandParams params;                             // slot 25
  PassRange pass = {};                              // slot 23
  std::array<DevicePointer, kSlots> slots = {};     // all others
  std::array<uint32_t, kConstants> constants = {};  // function constants, by index
  std::array<uint32_t, 4> shared_offset = {};       // of each part of shared memory, in bytes
};
static_assert(offsetof(Arguments, slots) == kMaxParamsBytes + 16 && sizeof(Arguments) == 384);

}  // namespace akunu::cuda
