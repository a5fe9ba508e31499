// An NVIDIA GPU as a Device. Memory is the GPU's own; weights are copied to it once. A submission is a
// few copies, a graph launched once per step, and an event; `submit` returns at once.
#pragma once

#include <memory>
#include <vector>

#include "core/device.h"
#include "registry.h"

namespace akunu {

// Throws ArgumentError for an unknown level and DeviceError where there is no GPU or no driver for it.
std::shared_ptr<Device> create_cuda_device(const DeviceOptions& options);

namespace cuda {

std::vector<Level> levels();
// That the process sees. Throws DeviceError where there is no driver.
uint32_t n_gpus();

// Takes some tenths of a second, with the GPU to itself. Throws as create_cuda_device, and OutOfMemoryError.
Roofline measure_roofline(const DeviceOptions& options);

}  // namespace cuda
}  // namespace akunu
