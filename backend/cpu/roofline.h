// What this CPU can do at most, measured with the threads and the instruction set level of a device;
// and which levels there are.
#pragma once

#include <vector>

#include "registry.h"

namespace akunu::cpu {

// Throws ArgumentError as create_cpu_device, OutOfMemoryError where there is no room for the buffer.
Roofline measure_roofline(const DeviceOptions& options);

std::vector<Level> levels();

}  // namespace akunu::cpu
