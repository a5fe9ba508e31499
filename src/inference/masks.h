// The mask thread: it computes the token masks that grammars impose. A mask may take microseconds or
// seconds, so the scheduler does not wait for it: the device computes logits and other texts go on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/home_process.h"
#include "inference/task.h"

namespace akunu {

class Masks {
 public:
  // `n_words`: of a mask. `most`: of the thread's time that one text may have beside kTimePerAnswer; what
  // takes more ends with a GrammarLimitError. `tell`: called by the thread whenever it has answered.
  Masks(size_t n_words, std::chrono::nanoseconds most, std::function<void()> tell);
  ~Masks() { stop(); }
  Masks(const Masks&) = delete;
  Masks& operator=(const Masks&) = delete;

  // Starts the thread, where it does not run yet: before the first text that has masks. Any thread may call.
  // Throws DeviceError where the system refuses one.
  void start();
  // Ends the thread after the request that it works on; queued ones are dropped. Nothing may be queued
  // afterwards.
  void stop();

  // Queues the task's pending request (text_masks.h). It is dropped if the task ends before its turn.
  void queue(std::shared_ptr<Task> task);

 private:
  // Texts whose masks all take that long go on however many tokens they have.
  static constexpr std::chrono::milliseconds kTimePerAnswer{10};

  void run();
  void answer(Task& task);

  const size_t n_words_;
  const std::chrono::nanoseconds most_;
  const std::function<void()> tell_;
  const HomeProcess home_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Task>> queue_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace akunu
