// The compiled kernels as the driver has loaded them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cuda/gpu.h"

namespace akunu::cuda {

// What the compiler made of one file of kernels, for every architecture that the build was asked for. A program
// links one list of them; a build without nvcc has an empty one.
struct KernelImage {
  std::string_view name;  // "matvec_32"
  const void* bytes = nullptr;
};
std::span<const KernelImage> kernel_images();
// The architectures that they are for: "sm_80 sm_90a".
std::string_view kernel_architectures();

class Modules {
 public:
  // Loads the first image only, which shows whether this GPU can run them; throws DeviceError where it
  // cannot. The others are loaded when the first program is compiled.
  explicit Modules(const Gpu& gpu);
  ~Modules();
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  // A function by the name that it has in the table of kernels. Throws UnsupportedModelError where
  // there is none. Needs the context of who calls.
  Function get(const std::string& name);

 private:
  void load(const KernelImage& image);
  void allow_shared_memory(Function function);

  const Gpu& gpu_;
  std::vector<Module> modules_;
  std::unordered_map<std::string, Function> functions_;
};

// The GPU and its kernels as this process has opened them.
struct Opened {
  explicit Opened(uint32_t ordinal) : gpu(ordinal) {}
  Gpu gpu;
  Modules modules{gpu};
};

// Those that are open already, or else new ones: a context and its kernels take tenths of a second, so
// they stay for devices to come. Throws as Gpu and Modules.
std::shared_ptr<Opened> open_gpu(uint32_t ordinal = 0);
// The next device opens its GPU anew. A context in which something failed is of no use any more; the
// driver gives it up once all devices that use it are gone.
void forget_gpu(uint32_t ordinal = 0);

}  // namespace akunu::cuda
