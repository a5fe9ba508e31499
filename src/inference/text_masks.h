// The grammar constraint of one text, and the token masks computed so far for its next rows. The
// scheduler's thread owns all of it, except while a request for masks is pending: then the mask thread
// does (masks.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "inference/constraint.h"

namespace akunu {

class TextMasks {
 public:
  explicit TextMasks(std::unique_ptr<Constraint> constraint) : constraint_(std::move(constraint)) {}

  // Whether the mask thread still works on a request. Until it is done, only rules() and cancel() may
  // be called.
  bool is_asked() const { return is_asked_.load(std::memory_order_acquire); }

  Constraint& constraint() const { return *constraint_; }
  // Stops the mask computation in progress, since the text has ended. Any thread may call it.
  void cancel() { constraint_->cancel(); }
  // Whether not every token may come next.
  bool rules() const { return is_asked() || !constraint_->is_free(); }

  // The scheduler's thread.

  // Opens the question which tokens are certain to come next, at most so many, and which may come
  // next where none is.
  void ask(uint32_t most_forced);
  // Opens the question which tokens may come next, and which after each drafted one.
  void ask(std::span<const uint32_t> drafted);
  // After the text went on: what was known is of another place.
  void forget();

  bool is_known() const { return !is_asked() && is_known_; }  // the answer to the first question
  std::span<const uint32_t> forced() const { return forced_; }
  // Whether the masks of 1 + so many drafted rows are there.
  bool has_masks(size_t n_drafted) const { return !is_asked() && n_masks_ > n_drafted; }
  // The drafted tokens behind which masks were asked for, at this place.
  std::span<const uint32_t> drafted() const { return drafted_; }
  std::span<const uint32_t> masks(size_t n_drafted) const {
    return std::span(masks_).first((1 + n_drafted) * (masks_.size() / n_rooms_));
  }

  // Its row ran in vain, since no mask was there in time: until one is, it has no row.
  bool is_late = false;

  // The thread of the masks.

  // Answers, with masks of so many words. `check` is called before somebody can know, and may throw.
  template <class Check>
  void answer(size_t n_words, const Check& check) {
    find_answer(n_words);
    check();
    is_known_ = true;
    is_asked_.store(false, std::memory_order_release);
  }
  // What it has spent on this text.
  std::chrono::nanoseconds time{0};
  uint32_t n_answers = 0;
  // Whether a mask has taken so little that masks of tokens that may not come cost nothing that counts.
  bool is_cheap() const { return time <= n_answers * kCheap; }

 private:
  static constexpr std::chrono::milliseconds kCheap{1};

  void find_answer(size_t n_words);
  void fill(std::span<const uint32_t> drafted, size_t n_words);

  const std::unique_ptr<Constraint> constraint_;
  std::atomic<bool> is_asked_{false};
  // The question.
  uint32_t most_forced_ = 0;
  std::vector<uint32_t> drafted_;
  bool asks_masks_ = false;  // the second question
  // The answer.
  bool is_known_ = false;
  std::vector<uint32_t> forced_;
  std::vector<uint32_t> masks_;
  size_t n_masks_ = 0;
  size_t n_rooms_ = 1;  // masks that masks_ has room for
};

}  // namespace akunu
