#include "inference/generation.h"

#include <algorithm>

namespace akunu {

void Task::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (reason_ != FinishReason::none) return;
  error_ = std::move(error);
  reason_ = FinishReason::cancelled;
  changed_.notify_all();
}

void Task::finish(FinishReason reason) {
  const std::lock_guard lock(mutex_);
  if (reason_ != FinishReason::none) return;
  reason_ = reason;
  changed_.notify_all();
}

void Task::rethrow_error() const {
  if (error_) std::rethrow_exception(error_);
}

Generation::Generation(GenerateRequest request) : request_(std::move(request)) {
  tokens_.reserve(request_.max_tokens);
  times_.reserve(request_.max_tokens);
}

size_t Generation::next(std::span<uint32_t> out, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout,
                    [&] { return taken_ < tokens_.size() || reason_ != FinishReason::none; });
  const size_t n = std::min(out.size(), tokens_.size() - taken_);
  std::copy_n(tokens_.begin() + static_cast<ptrdiff_t>(taken_), n, out.begin());
  taken_ += n;
  if (n == 0 && reason_ != FinishReason::none) rethrow_error();
  return n;
}

FinishReason Generation::reason() const {
  const std::lock_guard lock(mutex_);
  return taken_ < tokens_.size() ? FinishReason::none : reason_;
}

uint32_t Generation::completion_tokens() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(tokens_.size());
}

double Generation::prompt_seconds() const {
  const std::lock_guard lock(mutex_);
  return times_.empty() ? 0.0 : std::chrono::duration<double>(times_[0] - requested_).count();
}

double Generation::completion_seconds(uint32_t n_tokens) const {
  const std::lock_guard lock(mutex_);
  const size_t n = std::min<size_t>(n_tokens, times_.size());
  return n == 0 ? 0.0 : std::chrono::duration<double>(times_[n - 1] - times_[0]).count();
}

void Generation::set_prompt_tokens_done(uint32_t n) {
  prompt_done_.store(std::min(prompt_tokens(), std::max(n, prompt_tokens_done())),
                     std::memory_order_relaxed);
}

void Generation::publish(uint32_t token) {
  const std::lock_guard lock(mutex_);
  times_.push_back(Clock::now());
  tokens_.push_back(token);
  changed_.notify_all();
}

LogitsTask::LogitsTask(LogitsRequest request, uint32_t vocab_size)
    : request_(std::move(request)),
      vocab_size_(vocab_size),
      logits_(std::make_unique_for_overwrite<float[]>((request_.tokens.size() - request_.first) *
                                                      size_t{vocab_size})) {}

bool LogitsTask::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return reason_ != FinishReason::none; });
  rethrow_error();
  return reason_ != FinishReason::none;
}

std::span<float> LogitsTask::logits(size_t first_row, size_t n_rows) {
  return {logits_.get() + (first_row - request_.first) * vocab_size_, n_rows * vocab_size_};
}

}  // namespace akunu
