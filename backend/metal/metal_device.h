// An Apple GPU as a Device. Memory is shared with the processor, weights stay where the file is
// mapped; a submission is one command buffer, encoded by `submit`, which returns at once.
//
// Everything that the host says about a submission goes through staging memory and is copied on the
// GPU in queue order, so several submissions may be in flight. What kernels record is copied out at
// the end of each: a submission runs all of its steps, whatever is recorded in them.
#pragma once

#include <memory>
#include <vector>

#include "core/device.h"
#include "registry.h"

namespace akunu {

// Throws ArgumentError for an unknown level and DeviceError where there is no GPU for it.
std::shared_ptr<Device> create_metal_device(const DeviceOptions& options);

namespace metal {

std::vector<Level> levels();

// Always throws DeviceError: not measured on this backend.
Roofline measure_roofline(const DeviceOptions& options);

}  // namespace metal
}  // namespace akunu
