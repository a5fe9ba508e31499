#include "inference/generation.h"

#include <algorithm>

namespace akunu {
namespace {

template <class Entry>
OptionList append(std::vector<uint32_t>& options, const std::vector<Entry>& entries) {
  const OptionList list{static_cast<uint32_t>(options.size()),
                        static_cast<uint32_t>(entries.size())};
  const auto bytes = std::as_bytes(std::span(entries));
  options.resize(options.size() + bytes.size() / sizeof(uint32_t));
  std::ranges::copy(
      bytes,
      std::as_writable_bytes(std::span(options)).subspan(list.first * sizeof(uint32_t)).begin());
  return list;
}

Choosing choosing_of(const GenerateRequest& request) {
  Choosing choosing;
  SequenceRecord& record = choosing.record;
  record.sampling = request.sampling;
  record.choice = request.choice;
  record.n_stop_ids = static_cast<uint32_t>(request.stop_ids.size());
  std::ranges::copy(request.stop_ids, record.stop_ids);
  record.biases = append(choosing.options, request.logit_bias);
  return choosing;
}

TaskRows rows_of(GenerateRequest& request) {
  TaskRows rows;
  rows.first_output = static_cast<uint32_t>(request.prompt.size()) - 1;
  rows.max_chosen = request.max_tokens;
  rows.tokens = std::move(request.prompt);
  return rows;
}

}  // namespace

Generation::Generation(GenerateRequest request, std::unique_ptr<Constraint> constraint)
    : Task(rows_of(request), choosing_of(request), request.priority),
      constraint_(std::move(constraint)) {
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
