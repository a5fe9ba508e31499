// The CPU as a Device. Weights stay where the file was mapped; submissions run inside `wait`, on
// the thread that calls it and on helpers.
//
// Because nothing runs outside `wait`, memory that a submission in flight may read stays as the
// host left it until then; `write`, `read` and `release` refuse it all the same, since on other
// devices that would be a race.
#pragma once

#include <memory>

#include "core/device.h"
#include "registry.h"

namespace akunu {

// Throws ArgumentError for an instruction set level that is unknown or not available, or for more
// than 256 threads. Starts no thread; the first `compile` does.
std::shared_ptr<Device> create_cpu_device(const DeviceOptions& options);

}  // namespace akunu
