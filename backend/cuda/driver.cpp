#include "cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "core/error.h"

namespace akunu::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr const char* kLibraryVariable = "AKUNU_CUDA_DRIVER";  // another library: tests set it

constexpr int32_t kLeastVersion = 12000;

std::string version_text(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string_view advice(Result result) {
  switch (result) {
    case kOutOfMemory:
      return "end other programs that use the GPU, or load with a smaller context";
    case 3:  // not initialised here
      return "a process that was forked after CUDA began cannot use it: start it anew (spawn)";
    case 46:   // the device is in exclusive mode, or another process uses it
    case 802:  // the system is not ready yet
      return "another process uses the GPU, or it is not ready: see `nvidia-smi`";
    case 100:  // no device
    case 101:  // no such device
      return "see `nvidia-smi` and CUDA_VISIBLE_DEVICES for which GPUs this process has";
    case 209:  // no kernel image for the device
    case 200:  // an image that the driver cannot read
    case 218:
    case 222:
      return "the kernels of this build are for other GPUs or a newer driver: docs/install.md says "
             "how "
             "they are built";
    case 214:  // memory that cannot be corrected
    case 79:   // the GPU fell off the bus
      return "the GPU has a fault: see `nvidia-smi -q` and the system's log, and load the model "
             "again";
    case 702:
      return "a kernel took longer than the system allows: load the model again";
    case 803:
    case 804:
      return "the driver's library and the system's part of it are of different versions: restart "
             "after an update of the driver";
    default:
      return "close the models on this GPU and load them again; if it happens again, a report with "
             "this message is welcome";
  }
}

Driver open() {
  const char* set = std::getenv(kLibraryVariable);
  const char* path = set == nullptr || *set == '\0' ? kLibrary : set;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw DeviceError(
        "there is no NVIDIA driver here: " + std::string(reason == nullptr ? path : reason) +
        "; install the driver of the GPU, and see that `nvidia-smi` works");
  }
  Driver driver;
#define AKUNU_CUDA_FIND(name, symbol, parameters)                                    \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #symbol));    \
  if (driver.name == nullptr)                                                        \
    throw DeviceError(std::string("the NVIDIA driver has no " #symbol " (") + path + \
                      "): it is older than " + version_text(kLeastVersion) + "; update it");
  AKUNU_CUDA_FUNCTIONS(AKUNU_CUDA_FIND)
#undef AKUNU_CUDA_FIND
  driver.check(driver.init(0), "the start of the NVIDIA driver");
  int32_t version = 0;
  driver.check(driver.driver_version(&version), "asking for the driver's version");
  if (version < kLeastVersion)
    throw DeviceError("the NVIDIA driver is for CUDA " + version_text(version) + ", and " +
                      version_text(kLeastVersion) + " is needed; update the driver");
  return driver;
}

}  // namespace

const Driver& Driver::get() {
  static std::mutex mutex;
  static const Driver* opened = nullptr;
  const std::lock_guard lock(mutex);
  if (opened == nullptr) opened = new Driver(open());  // for as long as the process lasts
  return *opened;
}

std::string Driver::describe(Result result, std::string_view what) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name == nullptr || error_name(result, &name) != kSuccess || name == nullptr)
    name = "error";
  if (error_string == nullptr || error_string(result, &text) != kSuccess || text == nullptr)
    text = "no description";
  return std::string(what) + " failed: " + name + " (" + std::to_string(result) + "), " + text +
         "; " + std::string(advice(result));
}

void Driver::fail(Result result, std::string_view what) const {
  throw DeviceError(describe(result, what));
}

}  // namespace akunu::cuda
