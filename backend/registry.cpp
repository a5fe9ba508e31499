#include "registry.h"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "core/device_group.h"
#include "core/device_share.h"
#include "core/error.h"
#include "core/home_process.h"
#include "core/kernel_params.h"
#include "cpu/cpu_device.h"
#include "cpu/roofline.h"
#ifdef AKUNU_CUDA_DEVICE
#include "cuda/cuda_device.h"
#endif
#ifdef AKUNU_CUDA_KERNEL_FILE
#include "cuda/packed/kernel_file.h"
#endif
#if defined(AKUNU_METAL) || defined(AKUNU_METAL_EMULATED)
#include "metal/metal_device.h"
#endif

namespace akunu {
namespace {

struct Backend {
  std::string_view name;
  std::shared_ptr<Device> (*create)(const DeviceOptions& options);
  Roofline (*measure_roofline)(const DeviceOptions& options);
  std::vector<Level> (*levels)();
  bool is_for_tests = false;  // taken only where it is asked for by name
};

// The fastest first: "auto" takes the first that finds a device. Those for tests are the last.
constexpr std::array kBackends{
#ifdef AKUNU_METAL
    Backend{"metal", create_metal_device, metal::measure_roofline, metal::levels},
#endif
#ifdef AKUNU_CUDA_DEVICE
    Backend{"cuda", create_cuda_device, cuda::measure_roofline, cuda::levels},
#endif
    Backend{"cpu", create_cpu_device, cpu::measure_roofline, cpu::levels},
#ifdef AKUNU_METAL_EMULATED
    Backend{"metal-emulated", create_metal_device, metal::measure_roofline, metal::levels, true},
#endif
};

// Calls `use` with the backend of this name; for "auto" with the first that finds a device.
template <class Use>
auto with_backend(std::string_view name, const Use& use) {
  std::string known;
  for (const Backend& backend : kBackends) {
    if (name == "auto" && !backend.is_for_tests) {
      const Backend* next = &backend + 1;
      if (next == kBackends.data() + kBackends.size() || next->is_for_tests) return use(backend);
      try {
        return use(backend);
      } catch (const DeviceError&) {  // there is none here; the next one, then
      }
    }
    if (backend.name == name) return use(backend);
    known += ", " + std::string(backend.name);
  }
#ifndef AKUNU_CUDA_DEVICE
  if (name == "cuda") throw ArgumentError("NVIDIA GPUs are used on Linux only");
#endif
  throw ArgumentError("there is no device \"" + std::string(name) + "\"; known are auto" + known);
}

// The devices that models of this process share, for as long as one of them does.
class SharedDevices {
 public:
  // After a fork the child begins anew: what it inherits may be locked, and works in the parent only.
  static SharedDevices& of_this_process() {
    static std::atomic<SharedDevices*> current{nullptr};
    SharedDevices* known = current.load();
    while (known == nullptr || known->home_.is_another()) {
      auto made = std::make_unique<SharedDevices>();
      if (current.compare_exchange_strong(known, made.get())) return *made.release();
    }
    return *known;
  }

  // The one that is like `made`, which is forgotten then, or else that. A device that was made costs
  // nothing before something is compiled for it.
  std::shared_ptr<SharedDevice> like(std::shared_ptr<Device> made) {
    const std::lock_guard lock(mutex_);
    std::erase_if(devices_, [](const auto& device) { return device.expired(); });
    for (const std::weak_ptr<SharedDevice>& known : devices_)
      if (std::shared_ptr<SharedDevice> device = known.lock();
          device && alike(*device->device, *made))
        return device;
    auto device = std::make_shared<SharedDevice>(std::move(made));
    devices_.push_back(device);
    return device;
  }

 private:
  static bool alike(const Device& a, const Device& b) {
    const ChipConfig &x = a.chip(), &y = b.chip();
    return a.backend() == b.backend() && x.name == y.name && x.level == y.level &&
           x.workers == y.workers && x.processors == y.processors;
  }

  const HomeProcess home_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<SharedDevice>> devices_;
};

}  // namespace

std::shared_ptr<Device> create_device(std::string_view name, const DeviceOptions& options) {
  if (options.gpus == 1)
    return with_backend(name, [&](const Backend& backend) { return backend.create(options); });
  if (options.gpus == 0 || options.gpus > kMaxRanks)
    throw ArgumentError("gpus must be 1 to " + std::to_string(kMaxRanks) + ", got " +
                        std::to_string(options.gpus));
  // Those that have several: others than "cuda" are for tests.
  return with_backend(name == "auto" ? "cuda" : name, [&](const Backend& backend) {
    std::vector<std::shared_ptr<Device>> ranks;
    DeviceOptions of_rank = options;
    for (of_rank.gpu = 0; of_rank.gpu < options.gpus; ++of_rank.gpu)
      ranks.push_back(backend.create(of_rank));
    return std::shared_ptr<Device>(std::make_shared<DeviceGroup>(std::move(ranks)));
  });
}

std::shared_ptr<Device> share_device(std::string_view name, const DeviceOptions& options) {
  return std::make_shared<DeviceShare>(
      SharedDevices::of_this_process().like(create_device(name, options)));
}

Roofline measure_roofline(std::string_view name, const DeviceOptions& options) {
  return with_backend(name,
                      [&](const Backend& backend) { return backend.measure_roofline(options); });
}

std::vector<Level> levels_of(std::string_view name) {
  return with_backend(name, [](const Backend& backend) { return backend.levels(); });
}

uint32_t n_devices([[maybe_unused]] std::string_view name) {
#ifdef AKUNU_CUDA_DEVICE
  if (name == "cuda") return cuda::n_gpus();
#endif
  return 1;
}

#ifdef AKUNU_CUDA_KERNEL_FILE
void use_cuda_kernels(const std::string& path) { cuda::use_kernel_file(path); }
#else
void use_cuda_kernels(const std::string&) {}  // it has its own, or there are none
#endif

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Backend& backend : kBackends) names.push_back(backend.name);
  return names;
}

}  // namespace akunu
