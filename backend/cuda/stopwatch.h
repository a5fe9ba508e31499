// The time that the GPU takes for what is put into its stream of steps.
#pragma once

#include <chrono>

#include "cuda/gpu.h"

namespace akunu::cuda {

class Stopwatch {
 public:
  // After `longest` a GPU that does not answer counts as lost.
  Stopwatch(const Gpu& gpu, std::chrono::seconds longest) : gpu_(gpu), longest_(longest) {
    for (Event* event : {&begin_, &end_})
      gpu_.driver().check(gpu_.driver().event_create(event, 0), "an event of the GPU");
  }
  ~Stopwatch() {
    for (Event event : {begin_, end_})
      if (event != nullptr) static_cast<void>(gpu_.driver().event_destroy(event));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Seconds. Throws DeviceError.
  template <class Work>
  double time(const Work& launch) {
    const Driver& driver = gpu_.driver();
    driver.check(driver.event_record(begin_, gpu_.steps()), "timing a command");
    launch();
    driver.check(driver.event_record(end_, gpu_.steps()), "timing a command");
    const Result result = wait_for(driver, end_, std::chrono::steady_clock::now() + longest_);
    driver.check(result, "a command that is timed");
    float milliseconds = 0;
    driver.check(driver.event_elapsed(&milliseconds, begin_, end_), "timing a command");
    return double{milliseconds} / 1e3;
  }

 private:
  const Gpu& gpu_;
  std::chrono::seconds longest_;
  Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace akunu::cuda
