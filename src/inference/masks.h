// The thread that asks constraints which tokens may come next. One text's masks may take microseconds and
// another's seconds: the scheduler goes on meanwhile, beside the device and with the other texts.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

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
  // Ends the thread when it has answered the question that it is at; the others stay open. Nobody may ask
  // any more.
  void stop();

  // Queues the question that was opened (text_masks.h). That of a task that is over meanwhile stays open.
  void queue(std::shared_ptr<Task> task);

 private:
  // Texts whose masks all take that long go on however many tokens they have.
  static constexpr std::chrono::milliseconds kTimePerAnswer{10};

  void run();
  void answer(Task& task);

  const size_t n_words_;
  const std::chrono::nanoseconds most_;
  const std::function<void()> tell_;
  const pid_t process_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Task>> queue_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace akunu
