// Where the GPU comes from: the one thing in which a Mac (system_macos.cpp) and the emulator
// (emulator/system_emulated.cpp) differ for the device.
#pragma once

#include <Metal/Metal.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "registry.h"

namespace akunu::metal {

struct System {
  NS::SharedPtr<MTL::Device> device;
  std::string level;         // of kernels, as `levels` names them
  uint32_t gpu_cores = 0;    // 0: the system does not tell
  std::string library_path;  // of the compiled kernels
};

std::string_view backend_name();  // "metal", "metal-emulated"
std::vector<Level> levels();

// `level`: empty for the usual one. Throws ArgumentError for an unknown level, DeviceError where
// there is no GPU that can run the kernels.
System open_system(std::string_view level);

}  // namespace akunu::metal
