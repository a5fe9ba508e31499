#include "inference/task.h"

#include <algorithm>
#include <bit>

namespace akunu {
namespace {

Choosing with_adapters(Choosing choosing, std::span<const TextAdapter> adapters) {
  if (adapters.empty()) return choosing;
  choosing.adapters = static_cast<uint32_t>(choosing.options.size());
  choosing.options.push_back(static_cast<uint32_t>(adapters.size()));
  for (const TextAdapter& each : adapters)
    choosing.options.insert(choosing.options.end(),
                            {each.adapter, std::bit_cast<uint32_t>(each.weight)});
  return choosing;
}

}  // namespace

Task::Task(TaskRows rows, Choosing choosing, int32_t priority)
    : rows_(std::move(rows)),
      choosing_(with_adapters(std::move(choosing), rows_.adapters)),
      priority_(priority) {}

void Task::on_change(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  on_change_ = std::move(callback);
  if (on_change_ && (reason_ != FinishReason::none || has_news())) on_change_();
}

void Task::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (reason_ != FinishReason::none) return;
  error_ = std::move(error);
  reason_ = FinishReason::cancelled;
  let_go();
  if (masks() != nullptr) masks()->cancel();
  tell_change();
}

void Task::finish(FinishReason reason) {
  const std::lock_guard lock(mutex_);
  if (reason_ != FinishReason::none) return;
  reason_ = reason;
  let_go();
  if (masks() != nullptr) masks()->cancel();
  tell_change();
}

bool Task::is_over() const {
  const std::lock_guard lock(mutex_);
  return reason_ != FinishReason::none;
}

bool Task::wait_for_end(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  wait_until(lock, timeout, [] { return false; });
  rethrow_error();
  return reason_ != FinishReason::none;
}

void Task::set_given_done(uint32_t n) {
  given_done_.store(std::min(n_given(), std::max(n, n_given_done())), std::memory_order_relaxed);
}

void Task::tell_change() {
  changed_.notify_all();
  if (on_change_) on_change_();
}

void Task::rethrow_error() const {
  if (error_) std::rethrow_exception(error_);
}

}  // namespace akunu
