// Tasks that wait. Callers add them from any thread; the scheduler's thread collects what came,
// orders it, and takes what there is room for. Only what is handed over needs the lock: who is
// admitted is decided without it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "inference/task.h"

namespace akunu {

// A caller's wish that a task be over after some of the tokens that it has chosen.
struct Cut {
  std::shared_ptr<Task> task;
  uint32_t n_chosen = 0;
};

class Queue {
 public:
  explicit Queue(uint32_t most_waiting) : most_waiting_(most_waiting) {}

  // Any thread.

  // Throws QueueFullError where as many wait as may, and Error where the queue is closed.
  void add(const std::shared_ptr<Task>& task);
  void cut(Cut cut);
  // Hands `work` to the scheduler's thread. Throws Error where the queue is closed.
  void hand_over(std::function<void()> work);
  // Wakes the scheduler's thread for the last time.
  void close();
  // Tasks that wait, as far as the scheduler's thread has told.
  size_t n_waiting() const { return n_waiting_.load(std::memory_order_relaxed); }
  // Until the scheduler's thread waits for somebody to come, however long; false when the time is up.
  bool wait_until_idle(std::chrono::milliseconds timeout);

  // The scheduler's thread.

  // Waits that long for something to collect, unless somebody is in line. False: it is closed.
  bool wait(std::chrono::milliseconds timeout);
  bool has_news() const { return news_.load(std::memory_order_acquire); }
  // Puts what came in line. Returns the cuts; those of tasks in line have left it.
  std::vector<Cut> collect();
  // What was handed over, once.
  std::vector<std::function<void()>> take_work();
  // One that was under way goes back to its place in line.
  void put_back(std::shared_ptr<Task> task);

  enum class Answer : uint8_t { taken, later, full };
  // Offers who is in line, in order, to `admit`, which says who left the line (taken), who lets
  // others pass (later), and when there is room for nobody else (full).
  template <class Admit>
  void offer(const Admit& admit);
  // Ends those that were cancelled.
  void drop_cancelled();
  bool empty() const { return line_.empty(); }
  // Who is in line.
  std::span<const std::shared_ptr<Task>> line() const { return line_; }
  // Waits at most that long until `holds`, whoever is in line. It is asked again when somebody comes, and
  // after wake(), which any thread may call.
  template <class Holds>
  void wait_until(std::chrono::steady_clock::time_point deadline, const Holds& holds);
  void wake();
  // Ends all of them with an error. Work that was handed over is dropped.
  void fail(const std::exception_ptr& error);

 private:
  void insert(std::shared_ptr<Task> task);
  void set_n_in_line();

  const uint32_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Task>> added_;
  std::vector<Cut> cuts_;
  std::vector<std::function<void()>> work_;
  size_t n_in_line_ = 0;
  std::atomic<size_t> n_waiting_{0};  // added_ and n_in_line_, for whoever watches
  uint64_t n_tasks_ = 0;
  bool closed_ = false;
  bool is_idle_ = false;  // the scheduler's thread waits, without limit
  std::condition_variable idle_;
  std::atomic<bool> news_{false};

  std::vector<std::shared_ptr<Task>> line_;  // the scheduler's thread's; see goes_before
};

template <class Admit>
void Queue::offer(const Admit& admit) {
  for (auto task = line_.begin(); task != line_.end();) {
    const Answer answer = admit(*task);
    if (answer == Answer::full) break;
    task = answer == Answer::taken ? line_.erase(task) : task + 1;
  }
  set_n_in_line();
}

template <class Holds>
void Queue::wait_until(std::chrono::steady_clock::time_point deadline, const Holds& holds) {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, deadline, holds);
}

}  // namespace akunu
