// Tasks of texts that are saved and loaded. One reads a text as a prompt and then hands out what the
// cache has of it; the other hands the cache what was saved. Neither chooses a token.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cache/position_copies.h"
#include "inference/task.h"

namespace akunu {

// What both are: all of a text's tokens, no output of a row, no token chosen.
class PositionsTask : public Task {
 public:
  // False when the time is up. Throws the error that ended the task.
  bool wait(std::chrono::milliseconds timeout) { return wait_for_end(timeout); }

  // The scheduler's side.
  const std::vector<uint32_t>& chosen() const override { return none_; }
  void take_tokens(std::span<const uint32_t>) override {}
  std::span<float> logits_of(uint32_t, uint32_t) override { return {}; }

 protected:
  PositionsTask(std::vector<uint32_t> tokens, SavedPositions saved, int32_t priority)
      : Task(rows_of(std::move(tokens)), Choosing{}, priority), saved_(std::move(saved)) {}
  bool has_news() const override { return false; }  // all of it comes with the end

  SavedPositions saved_;

 private:
  static TaskRows rows_of(std::vector<uint32_t> tokens) {
    TaskRows rows;
    rows.first_output = static_cast<uint32_t>(tokens.size());
    rows.tokens = std::move(tokens);
    rows.saves = true;  // somebody waits for it
    return rows;
  }

  const std::vector<uint32_t> none_;
};

class SavingTask final : public PositionsTask {
 public:
  // `room`: as many first entries as there are groups, and as many bytes as there can be.
  SavingTask(std::vector<uint32_t> tokens, SavedPositions room)
      : PositionsTask(std::move(tokens), std::move(room), 0) {}

  // All positions of the text, once `wait` was true.
  SavedPositions take() { return std::move(saved_); }

  // The scheduler's side.
  void take_positions(const PositionCopies& copies, uint32_t slot) override {
    copies.read(slot, saved_);
  }
};

class RestoringTask final : public PositionsTask {
 public:
  RestoringTask(std::vector<uint32_t> tokens, SavedPositions saved)
      : PositionsTask(std::move(tokens), std::move(saved), INT32_MAX) {}

  // The scheduler's side.
  const SavedPositions* restores() const override { return &saved_; }
};

}  // namespace akunu
