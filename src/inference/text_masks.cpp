#include "inference/text_masks.h"

#include <algorithm>

namespace akunu {

void TextMasks::ask(uint32_t most_forced) {
  most_forced_ = most_forced;
  drafted_.clear();
  asks_masks_ = false;
  is_asked_.store(true, std::memory_order_release);
}

void TextMasks::ask(std::span<const uint32_t> drafted) {
  drafted_.assign(drafted.begin(), drafted.end());
  asks_masks_ = true;
  is_asked_.store(true, std::memory_order_release);
}

void TextMasks::forget() {
  is_known_ = is_late = false;
  forced_.clear();
  drafted_.clear();
  n_masks_ = 0;
}

void TextMasks::find_answer(size_t n_words) {
  if (asks_masks_) {
    fill(drafted_, n_words);
  } else {
    forced_.resize(most_forced_);
    forced_.resize(constraint_->forced(forced_));
    // Otherwise the next question is how many of them have rows of their own.
    if (forced_.empty()) fill({}, n_words);
  }
}

// A constraint that cannot tell its masks has an error from then on, and its text may choose anything,
// which is not used.
void TextMasks::fill(std::span<const uint32_t> drafted, size_t n_words) {
  n_rooms_ = std::max(n_rooms_, 1 + drafted.size());
  masks_.resize(n_rooms_ * n_words);
  const std::span used = std::span(masks_).first((1 + drafted.size()) * n_words);
  if (!constraint_->fill(drafted, used)) std::ranges::fill(used, UINT32_MAX);
  n_masks_ = 1 + drafted.size();
}

}  // namespace akunu
