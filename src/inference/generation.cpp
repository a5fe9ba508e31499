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
  record.n_prompt = static_cast<uint32_t>(request.prompt.size());
  for (const uint32_t n : {request.logprobs, request.prompt_logprobs})
    if (n != kNone) record.n_logprobs = std::max(record.n_logprobs, n);
  record.biases = append(choosing.options, request.logit_bias);
  record.dry_breakers = append(choosing.options, request.dry_breakers);
  record.dry_breakers.n = *count_breakers(request.dry_breakers);
  record.rules = request.rules;
  record.rules.banned = append(choosing.options, request.banned);
  record.rules.banned_first = append(choosing.options, request.banned_first);
  return choosing;
}

TaskRows rows_of(const GenerateRequest& request) {
  TaskRows rows;
  rows.first_output = static_cast<uint32_t>(request.prompt.size()) - 1;
  rows.max_chosen = request.max_tokens;
  rows.scores_chosen = request.logprobs != kNone;
  rows.scores_given = request.prompt_logprobs != kNone;
  if (request.max_tokens == 0) ++rows.first_output;  // none
  rows.tokens = request.prompt;
  rows.shares_with = request.shares_with;
  rows.adapters = request.adapters;
  rows.window = request.window;
  rows.images = request.images;
  rows.speculation = request.speculation;
  rows.keeps_positions = request.keeps_positions;
  return rows;
}

}  // namespace

std::optional<uint32_t> count_breakers(std::span<const uint32_t> words) {
  uint32_t n = 0;
  for (; !words.empty(); ++n) {
    if (words.size() < 2) return std::nullopt;
    const uint64_t n_words = 2 + uint64_t{words[0]} + words[1];
    if (words.size() < n_words) return std::nullopt;
    words = words.subspan(n_words);
  }
  return n;
}

Generation::Generation(GenerateRequest request, std::unique_ptr<Constraint> constraint,
                       std::shared_ptr<const MovedPositions> moved)
    : Task(rows_of(request), choosing_of(request), request.priority),
      masks_(constraint ? std::make_unique<TextMasks>(std::move(constraint)) : nullptr),
      moved_(std::move(moved)),
      n_moved_(moved_ ? moved_->n : 0),
      n_exact_(moved_ ? moved_->n_exact : kNone) {
  tokens_.reserve(request.max_tokens);
  if (rows().scores_chosen) logprobs_.reserve(request.max_tokens);
  if (rows().scores_given) given_logprobs_.resize(n_given() - 1);
  times_.reserve(request.max_tokens);
}

std::optional<size_t> Generation::next(std::span<uint32_t> out, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  wait_until(lock, timeout, [&] { return has_news(); });
  const size_t n = std::min(out.size(), tokens_.size() - taken_);
  std::copy_n(tokens_.begin() + static_cast<ptrdiff_t>(taken_), n, out.begin());
  taken_ += n;
  if (n > 0 || reason_ == FinishReason::none) return n;
  rethrow_error();
  return std::nullopt;
}

std::vector<TokenLogprobs> Generation::logprobs(size_t first, size_t n) const {
  const std::lock_guard lock(mutex_);
  const auto from = logprobs_.begin() + static_cast<ptrdiff_t>(std::min(first, logprobs_.size()));
  return {from, from + std::min<ptrdiff_t>(static_cast<ptrdiff_t>(n), logprobs_.end() - from)};
}

std::vector<TokenLogprobs> Generation::prompt_logprobs() const {
  const std::lock_guard lock(mutex_);
  return given_logprobs_;
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

void Generation::take_logprobs(std::span<const TokenLogprobs> logprobs) {
  const std::lock_guard lock(mutex_);
  logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
}

void Generation::take_given_logprobs(uint32_t first_row, std::span<const TokenLogprobs> logprobs) {
  const std::lock_guard lock(mutex_);
  // Nothing that was given is behind the last row.
  const size_t n = std::min(logprobs.size(), given_logprobs_.size() - first_row);
  std::ranges::copy(logprobs.first(n), given_logprobs_.begin() + static_cast<ptrdiff_t>(first_row));
  n_scored_ = std::max(n_scored_, first_row + static_cast<uint32_t>(logprobs.size()));
}

}  // namespace akunu
