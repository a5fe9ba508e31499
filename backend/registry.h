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
  uint32_t gpus = 1;     // that compute a model together, the first that the process sees
  uint32_t gpu = 0;      // the one that a device is, counted as the driver does
  std::string isa = {};  // CPU instruction set level; empty: AKUNU_CPU_ISA, or the best there is
};

// The two limits that a program on a device can come up against, measured.
struct Roofline {
  std::string level;
  uint32_t workers = 0;
  uint64_t buffer_bytes = 0;                // what was read: beyond every cache
  double read_bytes_per_second = 0;         // all workers together
  double float_operations_per_second = 0;   // a multiplication and an addition are two
  double byte_operations_per_second = 0;    // likewise, of int8 numbers
  double pair_operations_per_second = 0;    // of int16, where prompts meet halves so; 0: they don't
  double bfloat_operations_per_second = 0;  // of bf16 on a matrix unit; 0: there is none in use
};

// A level of kernels that a device may have.
struct Level {
  std::string_view name;
  std::string_view needs;     // "AVX2, FMA and F16C"
  bool is_available = false;  // to this processor and its operating system
  bool is_built = true;       // false where this build was made without it
};

// `name` is one of backend_names(), or "auto" for the first of them that works here.
// Throws ArgumentError for another name, DeviceError when the backend finds no device.
std::shared_ptr<Device> create_device(std::string_view name, const DeviceOptions& options = {});

// What a model uses: a share of the device that others in this process use already, where they asked
// for the same one (backend, level and threads), or of a new one. Throws as create_device.
std::shared_ptr<Device> share_device(std::string_view name, const DeviceOptions& options = {});

// Takes about two seconds of all that the device has. Throws as create_device, and OutOfMemoryError
// where there is no room for the buffer.
Roofline measure_roofline(std::string_view name, const DeviceOptions& options = {});

// The levels of kernels that there are for a device, the best last. Throws ArgumentError for an
// unknown name.
std::vector<Level> levels_of(std::string_view name);

// Where the compiled kernels of the device cuda are, in a build that has none inside; said before a
// device is asked for. A path that is no such file is an error of who asks for the device.
void use_cuda_kernels(const std::string& path);

// Number of devices of this backend that one model can be divided among: of "cuda" the GPUs that the process sees, of
// all others 1.
uint32_t n_devices(std::string_view name);

// Those of this build, the fastest first.
std::vector<std::string_view> backend_names();

}  // namespace akunu
