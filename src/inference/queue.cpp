#include "inference/queue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"

namespace akunu {

void Queue::add(const std::shared_ptr<Task>& task) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error("the model is closed");
    if (added_.size() + n_in_line_ >= most_waiting_)
      throw QueueFullError(std::to_string(most_waiting_) +
                           " requests are waiting already, as many as may; try again when some "
                           "of them are done");
    task->arrival = ++n_tasks_;
    added_.push_back(task);
    n_waiting_.store(added_.size() + n_in_line_, std::memory_order_relaxed);
    news_.store(true, std::memory_order_release);
  }
  wake_.notify_one();
}

void Queue::cut(Cut cut) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    cuts_.push_back(std::move(cut));
    news_.store(true, std::memory_order_release);
  }
  wake_.notify_one();
}

void Queue::hand_over(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error("the model is closed");
    work_.push_back(std::move(work));
    news_.store(true, std::memory_order_release);
  }
  wake_.notify_one();
}

std::vector<std::function<void()>> Queue::take_work() {
  const std::lock_guard lock(mutex_);
  return std::exchange(work_, {});
}

void Queue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    news_.store(true, std::memory_order_release);
  }
  wake_.notify_one();
  idle_.notify_all();
}

bool Queue::wait_until_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [&] {
    return closed_ || (is_idle_ && added_.empty() && cuts_.empty() && work_.empty());
  });
}

bool Queue::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto has_news = [&] {
    return closed_ || !added_.empty() || !cuts_.empty() || !work_.empty();
  };
  if (!line_.empty()) return !closed_;
  if (timeout == kWithoutLimit) {
    is_idle_ = true;
    idle_.notify_all();
    wake_.wait(lock, has_news);
    is_idle_ = false;
  } else if (timeout.count() > 0) {
    wake_.wait_for(lock, timeout, has_news);
  }
  return !closed_;
}

void Queue::wake() {
  {
    const std::lock_guard lock(mutex_);  // whoever waits has either not looked yet, or sleeps
  }
  wake_.notify_one();
}

std::vector<Cut> Queue::collect() {
  std::vector<std::shared_ptr<Task>> added;
  std::vector<Cut> cuts;
  {
    const std::lock_guard lock(mutex_);
    added.swap(added_);
    cuts.swap(cuts_);
    n_in_line_ += added.size();
    news_.store(closed_, std::memory_order_release);
  }
  for (std::shared_ptr<Task>& task : added) insert(std::move(task));
  for (const Cut& cut : cuts) std::erase(line_, cut.task);
  if (!cuts.empty()) set_n_in_line();
  return cuts;
}

void Queue::put_back(std::shared_ptr<Task> task) {
  insert(std::move(task));
  set_n_in_line();
}

void Queue::insert(std::shared_ptr<Task> task) {
  const auto place = std::ranges::find_if(
      line_, [&](const std::shared_ptr<Task>& other) { return goes_before(*task, *other); });
  line_.insert(place, std::move(task));
}

void Queue::drop_cancelled() {
  const size_t n_gone = std::erase_if(line_, [](const std::shared_ptr<Task>& task) {
    if (!task->is_cancelled()) return false;
    task->finish(FinishReason::cancelled);
    return true;
  });
  if (n_gone > 0) set_n_in_line();
}

void Queue::fail(const std::exception_ptr& error) {
  static_cast<void>(collect());
  static_cast<void>(take_work());
  for (const std::shared_ptr<Task>& task : line_) task->fail(error);
  line_.clear();
  set_n_in_line();
}

void Queue::set_n_in_line() {
  const std::lock_guard lock(mutex_);
  n_in_line_ = line_.size();
  n_waiting_.store(added_.size() + n_in_line_, std::memory_order_relaxed);
}

}  // namespace akunu
