#include "inference/constraint.h"

#include <algorithm>

namespace akunu {

AfterFreeText::AfterFreeText(FreeText free, std::unique_ptr<Constraint> after,
                             std::shared_ptr<const TokenBytes> bytes)
    : free_(std::move(free)), after_(std::move(after)), bytes_(std::move(bytes)) {
  for (const std::string& text : free_.until_texts)
    most_bytes_ = std::max(most_bytes_, text.size());
  for (const std::vector<uint32_t>& tokens : free_.until_tokens)
    most_length_ = std::max(most_length_, tokens.size());
  count();
}

bool AfterFreeText::is_free() const {
  switch (stage_) {
    case Stage::free:
      return true;
    case Stage::writes:
      return false;
    case Stage::after:
      return !after_ || after_->is_free();
  }
  __builtin_unreachable();
}

bool AfterFreeText::is_over() const {
  return stage_ == Stage::after && after_ && after_->is_over();
}

bool AfterFreeText::accept(uint32_t token) {
  switch (stage_) {
    case Stage::free:
      ++n_tokens_;
      if (has_begun(token))
        stage_ = Stage::after;
      else
        count();
      return true;
    case Stage::writes:
      if (token != free_.then[n_written_]) return false;
      if (++n_written_ == free_.then.size()) stage_ = Stage::after;
      return true;
    case Stage::after:
      return !after_ || after_->accept(token);
  }
  __builtin_unreachable();
}

// Ends the free text where it has as many tokens as it may.
void AfterFreeText::count() {
  if (free_.most_tokens && n_tokens_ >= *free_.most_tokens)
    stage_ = free_.then.empty() ? Stage::after : Stage::writes;
}

bool AfterFreeText::ends_with(std::span<const uint32_t> tokens) const {
  return recent_.size() >= tokens.size() &&
         std::equal(tokens.begin(), tokens.end(),
                    recent_.end() - static_cast<ptrdiff_t>(tokens.size()));
}

// Whether what comes after the free text has begun with this token, or behind it.
bool AfterFreeText::has_begun(uint32_t token) {
  if (most_length_ > 0) {
    if (recent_.size() == most_length_) recent_.erase(recent_.begin());
    recent_.push_back(token);
    if (std::ranges::any_of(free_.until_tokens, [&](const auto& each) { return ends_with(each); }))
      return true;
  }
  if (most_bytes_ == 0) return false;
  const std::string_view bytes = bytes_->bytes_of(token);
  const size_t n_before = tail_.size();
  tail_ += bytes;
  // Of all that end within this token, the one that ends first; a text that goes on behind one as
  // the other constraint cannot is still free.
  for (size_t end = n_before + 1; end <= tail_.size(); ++end) {
    const std::string_view so_far = std::string_view(tail_).substr(0, end);
    if (std::ranges::none_of(free_.until_texts,
                             [&](const std::string& each) { return so_far.ends_with(each); }))
      continue;
    const std::string_view rest = std::string_view(tail_).substr(end);
    if (rest.empty() || !after_ || after_->accept_bytes(rest)) return true;
  }
  if (tail_.size() >= most_bytes_) tail_.erase(0, tail_.size() - most_bytes_ + 1);
  return false;
}

uint32_t AfterFreeText::forced(std::span<uint32_t> out) {
  if (stage_ == Stage::after) return after_ ? after_->forced(out) : 0;
  if (stage_ == Stage::free) return 0;
  const auto left = std::span(free_.then).subspan(n_written_);
  const size_t n = std::min(out.size(), left.size());
  std::ranges::copy(left.first(n), out.begin());
  return static_cast<uint32_t>(n);
}

uint32_t AfterFreeText::n_allowed(std::span<const uint32_t> tokens) {
  if (stage_ == Stage::free) return static_cast<uint32_t>(tokens.size());
  return stage_ == Stage::after && after_ ? after_->n_allowed(tokens) : 0;
}

bool AfterFreeText::fill(std::span<const uint32_t> drafted, std::span<uint32_t> masks) {
  if (stage_ == Stage::after) return !after_ || after_->fill(drafted, masks);
  const size_t n_words = masks.size() / (drafted.size() + 1);
  std::ranges::fill(masks, 0u);
  for (size_t i = 0; i <= drafted.size(); ++i) {
    const std::span mask = masks.subspan(i * n_words, n_words);
    if (n_written_ + i == free_.then.size())  // the last of `then` was drafted
      return !after_ || after_->is_free() ? (std::ranges::fill(mask, UINT32_MAX), true)
                                          : after_->fill({}, mask);
    const uint32_t token = free_.then[n_written_ + i];
    mask[token / 32] |= 1u << token % 32;
  }
  return true;
}

}  // namespace akunu
