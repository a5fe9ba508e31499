// _core.PendingLogits: logits, or an encoder's output, under way. A forked child is refused, as by
// native_generation.h.
#pragma once

#include <pybind11/numpy.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/home_process.h"
#include "inference/logits_task.h"
#include "waker.h"

namespace akunu::python {

class NativeLogits {
 public:
  explicit NativeLogits(std::shared_ptr<LogitsTask> task) : task_(std::move(task)) {}
  ~NativeLogits();
  NativeLogits(const NativeLogits&) = delete;
  NativeLogits& operator=(const NativeLogits&) = delete;

  // When it can be taken, the waker hears of this id; None: no more.
  void wake(const std::shared_ptr<Waker>& waker, uint64_t id);
  void cancel() { task_->cancel(); }
  bool wait(std::chrono::milliseconds timeout) { return get().wait(timeout); }
  // float32 [n_outputs, width], once `wait` was true.
  pybind11::array_t<float> take();
  // Waits until it can be taken.
  pybind11::array_t<float> result();

 private:
  LogitsTask& get() const;

  std::shared_ptr<LogitsTask> task_;
  HomeProcess home_;
};

}  // namespace akunu::python
