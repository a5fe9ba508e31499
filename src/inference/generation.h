// A task that chooses tokens: what generating a text asks for, and where the tokens wait until
// somebody takes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "inference/task.h"

namespace akunu {

struct GenerateRequest {
  std::vector<uint32_t> prompt;
  uint32_t max_tokens = 0;
  std::vector<uint32_t> stop_ids;  // at most kMaxStopIds
  Sampling sampling;
  std::vector<TokenBias> logit_bias = {};  // each token once; as many as kMaxOptionWords hold
  uint32_t choice = 0;                     // which of several answers to one prompt
  int32_t priority = 0;
};

class Generation : public Task {
 public:
  explicit Generation(GenerateRequest request, std::unique_ptr<Constraint> constraint = nullptr);

  // Copies tokens that were not taken yet into `out`, waiting for the first of them. Returns how
  // many: 0 means that the time is up, or that it is over (see reason()). Throws the error that
  // ended the generation once every token before it has been taken.
  size_t next(std::span<uint32_t> out, std::chrono::milliseconds timeout);

  // none: still under way, or tokens are left to take.
  FinishReason reason() const;
  uint32_t completion_tokens() const;
  double prompt_seconds() const;                       // from the request to the first token
  double completion_seconds(uint32_t n_tokens) const;  // from the first of these tokens to the last

  // The scheduler's side.
  Constraint* constraint() const override { return constraint_.get(); }
  const std::vector<uint32_t>& chosen() const override { return tokens_; }
  void take_tokens(std::span<const uint32_t> tokens) override;
  std::span<float> logits_of(uint32_t, uint32_t) override { return {}; }

 protected:
  bool has_news() const override { return taken_ < tokens_.size(); }

 private:
  using Clock = std::chrono::steady_clock;

  const std::unique_ptr<Constraint> constraint_;
  std::vector<uint32_t> tokens_;  // capacity max_chosen
  size_t taken_ = 0;
  Clock::time_point requested_ = Clock::now();
  std::vector<Clock::time_point> times_;  // of each token; capacity max_chosen
};

}  // namespace akunu
