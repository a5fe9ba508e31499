#include "inference/masks.h"

#include <ctime>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace akunu {

namespace {

// Processor time of this thread: what others do meanwhile does not count.
std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

Masks::Masks(size_t n_words, std::chrono::nanoseconds most, std::function<void()> tell)
    : n_words_(n_words), most_(most), tell_(std::move(tell)) {}

void Masks::start() {
  const std::lock_guard lock(mutex_);
  if (stops_ || thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw DeviceError(std::string("the system refused a thread for grammars: ") + error.what());
  }
}

void Masks::stop() {
  if (home_.is_another()) {  // a child has no such thread, and the lock may be held for ever
    if (thread_.joinable()) thread_.detach();
    return;
  }
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    queue_.clear();
    thread.swap(thread_);
  }
  wake_.notify_one();
  if (thread.joinable()) thread.join();
}

void Masks::queue(std::shared_ptr<Task> task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void Masks::run() {
  while (true) {
    std::shared_ptr<Task> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stops_ || !queue_.empty(); });
      if (stops_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    if (task->is_over()) continue;
    try {
      answer(*task);
    } catch (...) {
      task->fail(std::current_exception());
      task->cancel();  // the scheduler drops it
    }
    tell_();
  }
}

void Masks::answer(Task& task) {
  TextMasks& masks = *task.masks();
  const std::chrono::nanoseconds start = thread_time();
  masks.answer(n_words_, [&] {
    masks.time += thread_time() - start;
    ++masks.n_answers;
    if (masks.time <= most_ + masks.n_answers * kTimePerAnswer) return;
    throw GrammarLimitError(
        "the grammar takes more work than a text may have: to say which tokens may come next "
        "took " +
        std::to_string(std::chrono::round<std::chrono::milliseconds>(masks.time).count()) +
        " ms at " + std::to_string(masks.n_answers) +
        " places; make large repetitions smaller, nest fewer of them, or list fewer alternatives");
  });
}

}  // namespace akunu
