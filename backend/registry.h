// Backends by name. The one place outside their folders that knows which there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace akunu {

struct DeviceOptions {
  uint32_t threads = 0;  // CPU workers; 0: as many as the process may use
  std::string isa = {};  // CPU instruction set level; empty: AKUNU_CPU_ISA, or the best there is
};

// `name` is one of backend_names(), or "auto" for the first of them that works here.
// Throws ArgumentError for another name, DeviceError when the backend finds no device.
std::shared_ptr<Device> create_device(std::string_view name, const DeviceOptions& options = {});

// Those of this build, the fastest first.
std::vector<std::string_view> backend_names();

}  // namespace akunu
