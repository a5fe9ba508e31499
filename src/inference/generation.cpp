#include "inference/generation.h"

#include <algorithm>

namespace akunu {
namespace {

SequenceRecord make_record(const GenerateRequest& request) {
  const SamplingSettings& sampling = request.sampling;
  SequenceRecord record{};
  record.version = kSequenceRecordVersion;
  record.seed_low = static_cast<uint32_t>(sampling.seed);
  record.seed_high = static_cast<uint32_t>(sampling.seed >> 32);
  record.choice = sampling.choice;
  record.temperature = sampling.temperature;
  record.top_k = sampling.top_k;
  record.top_p = sampling.top_p;
  record.min_p = sampling.min_p;
  record.repetition_penalty = sampling.repetition_penalty;
  record.frequency_penalty = sampling.frequency_penalty;
  record.presence_penalty = sampling.presence_penalty;
  record.penalty_window = sampling.penalty_window;
  record.n_stop_ids = static_cast<uint32_t>(request.stop_ids.size());
  record.mask = kNone;
  std::copy(request.stop_ids.begin(), request.stop_ids.end(), record.stop_ids);
  return record;
}

TaskRows rows_of(GenerateRequest& request) {
  TaskRows rows;
  rows.first_output = static_cast<uint32_t>(request.prompt.size()) - 1;
  rows.max_chosen = request.max_tokens;
  rows.tokens = std::move(request.prompt);
  return rows;
}

}  // namespace

Generation::Generation(GenerateRequest request)
    : Task(rows_of(request), make_record(request), request.priority) {
  tokens_.reserve(request.max_tokens);
  times_.reserve(request.max_tokens);
}

size_t Generation::next(std::span<uint32_t> out, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  wait_until(lock, timeout, [&] { return has_news(); });
  const size_t n = std::min(out.size(), tokens_.size() - taken_);
  std::copy_n(tokens_.begin() + static_cast<ptrdiff_t>(taken_), n, out.begin());
  taken_ += n;
  if (n == 0 && reason_ != FinishReason::none) rethrow_error();
  return n;
}

FinishReason Generation::reason() const {
  const std::lock_guard lock(mutex_);
  return has_news() ? FinishReason::none : reason_;
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

void Generation::take_tokens(std::span<const uint32_t> tokens) {
  const std::lock_guard lock(mutex_);
  times_.insert(times_.end(), tokens.size(), Clock::now());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  tell_change();
}

}  // namespace akunu
