// A GPU of this machine, its context, and the two streams that work goes into.
#pragma once

#include <chrono>
#include <string>

#include "cuda/driver.h"

namespace akunu::cuda {

class Gpu {
 public:
  // Throws DeviceError where there is none, or one that is older than sm_80.
  // `ordinal`: which of those that the process sees.
  explicit Gpu(uint32_t ordinal = 0);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Driver& driver() const { return driver_; }
  Stream steps() const { return steps_; }      // submissions, in order
  Stream copies() const { return copies_; }    // what the host reads and writes beside them
  Stream capture() const { return capture_; }  // where graphs are recorded; nothing runs in it

  Context context() const { return context_; }
  const std::string& name() const { return name_; }
  uint32_t capability() const { return capability_; }  // 90 for sm_90
  // Lets kernels here use the memory of another one. Throws DeviceError.
  void reach(const Gpu& other) const;
  uint32_t ordinal() const { return ordinal_; }
  int32_t attribute(Attribute attribute) const;
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  friend class Current;
  const Driver& driver_;
  uint32_t ordinal_ = 0;
  DeviceNumber device_ = 0;
  Context context_ = nullptr;
  Stream steps_ = nullptr, copies_ = nullptr, capture_ = nullptr;
  std::string name_;
  uint32_t capability_ = 0;
  uint64_t memory_bytes_ = 0;
};

// The context is the calling thread's while this lives. The caller may have another current context before and after.
class Current {
 public:
  explicit Current(const Gpu& gpu) : gpu_(gpu) {
    gpu.driver_.check(gpu.driver_.context_push(gpu.context_), "taking up the GPU's context");
  }
  ~Current() {
    Context before = nullptr;
    static_cast<void>(gpu_.driver_.context_pop(&before));
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Gpu& gpu_;
};

// Waits until the event is reached. A wait for the driver itself could last for ever; this looks, and
// sleeps in between once it has lasted. Returns kNotReady when the deadline came first.
Result wait_for(const Driver& driver, Event event, std::chrono::steady_clock::time_point deadline);

}  // namespace akunu::cuda
