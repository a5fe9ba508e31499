// _core.Generation: a text under way. What it is asked takes a lock of the engine's, so a forked child is
// refused, and leaves it as it is (core/home_process.h).
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/home_process.h"
#include "inference/engine.h"
#include "inference/generation.h"
#include "waker.h"

namespace akunu::python {

class NativeGeneration {
 public:
  NativeGeneration(std::shared_ptr<Generation> generation, const std::shared_ptr<Engine>& engine)
      : generation_(std::move(generation)), engine_(engine) {}
  ~NativeGeneration();
  NativeGeneration(const NativeGeneration&) = delete;
  NativeGeneration& operator=(const NativeGeneration&) = delete;

  // New tokens; [] when the time is up; None when it is over. Without a time, until either comes.
  pybind11::object next(std::optional<int> timeout_ms);
  // Throws DeviceError in a forked child.
  Generation& get() const;
  // Whenever tokens can be had, or it is over, the waker hears of this id; None: no more.
  void wake(const std::shared_ptr<Waker>& waker, uint64_t id);
  uint32_t prompt_tokens() const { return generation_->n_given(); }
  void cancel() { generation_->cancel(); }
  const std::shared_ptr<Generation>& shared() const { return generation_; }
  uint64_t arrival() const { return generation_->arrival; }
  // The text ends after this many tokens, and so does what stays in the cache.
  void cut(uint32_t n_tokens);

 private:
  std::shared_ptr<Generation> generation_;
  std::weak_ptr<Engine> engine_;
  HomeProcess home_;
};

}  // namespace akunu::python
