// The GPU of a Mac.
#include <CoreFoundation/CoreFoundation.h>
#include <IOKit/IOKitLib.h>
#include <dlfcn.h>

#include <string>

#include "core/error.h"
#include "metal/system.h"

namespace akunu::metal {
namespace {

constexpr std::string_view kLevel = "apple";
constexpr const char* kLibraryName = "akunu.metallib";

// What the driver tells of the GPU, which Metal does not.
uint32_t gpu_core_count() {
  const io_service_t service =
      IOServiceGetMatchingService(kIOMainPortDefault, IOServiceMatching("AGXAccelerator"));
  if (service == IO_OBJECT_NULL) return 0;
  const CFTypeRef property =
      IORegistryEntryCreateCFProperty(service, CFSTR("gpu-core-count"), kCFAllocatorDefault, 0);
  IOObjectRelease(service);
  int32_t cores = 0;
  if (property != nullptr) {
    if (CFGetTypeID(property) != CFNumberGetTypeID() ||
        !CFNumberGetValue(static_cast<CFNumberRef>(property), kCFNumberSInt32Type, &cores))
      cores = 0;
    CFRelease(property);
  }
  return cores > 0 ? static_cast<uint32_t>(cores) : 0;
}

// The compiled kernels lie beside the library that this function is part of.
std::string find_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_library), &info) == 0 || info.dli_fname == nullptr)
    throw DeviceError("the system does not tell where akunu is installed");
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return (slash == std::string::npos ? "" : path.substr(0, slash + 1)) + kLibraryName;
}

}  // namespace

std::string_view backend_name() { return "metal"; }

std::vector<Level> levels() {
  const NS::SharedPtr<MTL::Device> device = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  return {{kLevel, "a GPU of Apple (M1 or later)", device.get() != nullptr}};
}

System open_system(std::string_view level) {
  if (!level.empty() && level != kLevel)
    throw ArgumentError("level \"" + std::string(level) + "\" is not one of apple");
  System system;
  system.level = kLevel;
  system.device = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  if (!system.device) throw DeviceError("there is no GPU that Metal can use");
  // Metal3 without a family of Apple's: the GPU of a virtual machine on such a chip.
  if (!system.device->supportsFamily(MTL::GPUFamilyApple7) &&
      !system.device->supportsFamily(MTL::GPUFamilyMetal3))
    throw DeviceError("the GPU is older than M1, whose instructions the kernels need");
  system.gpu_cores = gpu_core_count();
  system.library_path = find_library();
  return system;
}

}  // namespace akunu::metal
