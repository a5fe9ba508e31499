#include "cuda/gpu.h"

#include <array>
#include <thread>

#include "core/error.h"
#include "cuda/cuda_device.h"

namespace akunu::cuda {
namespace {

constexpr uint32_t kLeastCapability = 80;

}  // namespace

uint32_t n_gpus() {
  int32_t n = 0;
  Driver::get().check(Driver::get().device_count(&n), "asking for GPUs");
  return static_cast<uint32_t>(n);
}

Gpu::Gpu(uint32_t ordinal) : driver_(Driver::get()), ordinal_(ordinal) {
  const uint32_t n_devices = n_gpus();
  if (n_devices == 0)
    throw DeviceError(
        "the NVIDIA driver finds no GPU; see `nvidia-smi` and CUDA_VISIBLE_DEVICES for which this "
        "process has");
  if (ordinal >= n_devices)
    throw DeviceError("this process has " + std::to_string(n_devices) +
                      (n_devices == 1 ? " GPU, and " : " GPUs, and ") +
                      std::to_string(ordinal + 1) +
                      " are asked for; see `nvidia-smi` and CUDA_VISIBLE_DEVICES");
  driver_.check(driver_.device_get(&device_, static_cast<int32_t>(ordinal)), "asking for a GPU");
  std::array<char, 256> name{};
  driver_.check(driver_.device_name(name.data(), static_cast<int32_t>(name.size()), device_),
                "asking for the GPU's name");
  name_ = name.data();
  capability_ = static_cast<uint32_t>(10 * attribute(Attribute::capability_major) +
                                      attribute(Attribute::capability_minor));
  if (capability_ < kLeastCapability)
    throw DeviceError(name_ + " has compute capability " + std::to_string(capability_ / 10) + "." +
                      std::to_string(capability_ % 10) +
                      "; 8.0 (A100, RTX 30 and later) is the least that kernels are made for");
  size_t bytes = 0;
  driver_.check(driver_.device_memory(&bytes, device_), "asking for the GPU's memory");
  memory_bytes_ = bytes;
  driver_.check(driver_.context_retain(&context_, device_), "the GPU's context");
  try {
    const Current current(*this);
    for (Stream* stream : {&steps_, &copies_, &capture_})
      driver_.check(driver_.stream_create(stream, kNonBlocking), "a stream of the GPU");
  } catch (...) {
    static_cast<void>(driver_.context_release(device_));
    throw;
  }
}

Gpu::~Gpu() {
  if (driver_.context_push(context_) == kSuccess) {
    for (Stream stream : {steps_, copies_, capture_})
      if (stream != nullptr) static_cast<void>(driver_.stream_destroy(stream));
    Context before = nullptr;
    static_cast<void>(driver_.context_pop(&before));
  }
  static_cast<void>(driver_.context_release(device_));
}

void Gpu::reach(const Gpu& other) const {
  int32_t can = 0;
  driver_.check(driver_.can_access(&can, device_, other.device_), "asking how GPUs are linked");
  if (can == 0)
    throw DeviceError("GPU " + std::to_string(ordinal_) + " cannot read the memory of GPU " +
                      std::to_string(other.ordinal_) +
                      " (peer access; `nvidia-smi topo -m` shows how they are linked), so they "
                      "cannot compute a model together: load it with gpus=1");
  const Current current(*this);
  const Result result = driver_.peer_access(other.context_, 0);
  if (result != kPeerAccessEnabled) driver_.check(result, "access to another GPU's memory");
}

int32_t Gpu::attribute(Attribute attribute) const {
  int32_t value = 0;
  driver_.check(driver_.device_attribute(&value, attribute, device_), "asking what the GPU is");
  return value;
}

Result wait_for(const Driver& driver, Event event, std::chrono::steady_clock::time_point deadline) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kBusy = std::chrono::milliseconds(2);  // steps of small models are shorter
  constexpr auto kNap = std::chrono::microseconds(50);
  const Clock::time_point begin = Clock::now();
  while (true) {
    const Result result = driver.event_query(event);
    if (result != kNotReady) return result;
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return kNotReady;
    if (now - begin > kBusy) std::this_thread::sleep_for(kNap);
  }
}

}  // namespace akunu::cuda
