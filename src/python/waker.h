// _core.Waker: one file descriptor at which an event loop learns which of many tasks have news.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/home_process.h"

namespace akunu::python {

class Waker : public std::enable_shared_from_this<Waker> {
 public:
  // Throws Error where the system gives no file descriptor.
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // Readable while `take` has ids to return. It can also be readable with none: where the only task
  // that had news was withdrawn before `take` was called.
  int fileno() const { return read_end_; }
  // What tells that the task which the caller calls `id` has news: for Task::on_change. It neither
  // blocks nor allocates.
  std::function<void()> teller(uint64_t id);
  // The ids that were told of since the last call, each once. In a process that was forked: none.
  std::vector<uint64_t> take();
  // For a thread of Python's that does nothing else: waits until there is something to take, or
  // `interrupt` was called since.
  void wait() const;
  void interrupt() const;

 private:
  struct Listed;

  int read_end_ = -1, write_end_ = -1;
  const HomeProcess home_;
  std::mutex mutex_;  // taken with a task's own one held, never the other way round
  size_t n_listed_ = 0;
  std::vector<Listed*> news_;  // capacity n_listed_
};

}  // namespace akunu::python
