// A task that chooses tokens: what generating a text asks for, and where the tokens wait until
// somebody takes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "inference/task.h"

namespace akunu {

class Generation;

struct GenerateRequest {
  std::vector<uint32_t> prompt;
  uint32_t max_tokens = 0;
  std::vector<uint32_t> stop_ids;  // at most kMaxStopIds
  Sampling sampling;
  std::vector<TokenBias> logit_bias = {};   // each token once; as many as kMaxOptionWords hold
  std::vector<uint32_t> dry_breakers = {};  // entries as in SequenceRecord, one behind the other
  // Logprobs of each token chosen, or given, with those of so many most likely ones; kNone: none.
  uint32_t logprobs = kNone;
  uint32_t prompt_logprobs = kNone;
  // Of another answer to the same prompt, its arrival: the prompt is computed for both. 0: none.
  uint64_t shares_with = 0;
  uint32_t choice = 0;  // which of several answers to one prompt
  int32_t priority = 0;
  uint32_t speculation = 0;  // kSpeculationOff, kSpeculationAuto, or tokens to draft: speculation.h
  std::vector<TextAdapter> adapters = {};  // each once
  // Of a speech model: the window of audio, and what may follow in its text.
  std::shared_ptr<const SpeechWindow> window = {};
  std::vector<PlacedImage> images = {};
  TranscriptionRules rules = {};            // without its lists, which are
  std::vector<uint32_t> banned = {};        // tokens that are never chosen
  std::vector<uint32_t> banned_first = {};  // nor as the first one
  // Where it fills the context, its positions are kept, for a text that goes on
  // without reading all it keeps again; and the text that this one goes on
  // from, which kept its own.
  bool keeps_positions = false;
  std::shared_ptr<Generation> goes_on_from = {};
};

// How many entries lists of breakers have; nothing where the words are no such list.
std::optional<uint32_t> count_breakers(std::span<const uint32_t> words);

class Generation : public Task {
 public:
  explicit Generation(GenerateRequest request, std::unique_ptr<Constraint> constraint = nullptr,
                      std::shared_ptr<const MovedPositions> moved = nullptr);

  // Copies tokens that were not taken yet into `out`, waiting for the first of them. Returns how
  // many, 0 where the time is up, and nothing where there are no more. Throws the error that ended
  // the generation once every token before it has been taken.
  std::optional<size_t> next(std::span<uint32_t> out, std::chrono::milliseconds timeout);

  // Of tokens that next() has given or may give: n from the first on, or fewer where there are no more.
  // Behind the last one there is that of the stop id that ended the text.
  std::vector<TokenLogprobs> logprobs(size_t first, size_t n) const;
  // Of the prompt's tokens but the first one, once the first token is there, or it is over.
  std::vector<TokenLogprobs> prompt_logprobs() const;

  // none: still under way, or tokens are left to take.
  FinishReason reason() const;
  uint32_t completion_tokens() const;
  double prompt_seconds() const;                       // from the request to the first token
  double completion_seconds(uint32_t n_tokens) const;  // from the first of these tokens to the last

  // Tokens of the prompt that were not read, but taken over of the text before;
  // see moved_text.h.
  uint32_t moved_tokens() const { return n_moved_; }
  // Positions that have the bits of a prompt, at most.
  uint32_t n_exact() const { return n_exact_; }
  // Given and chosen.
  std::vector<uint32_t> text() const;
  // What it kept when it ended; nothing a second time.
  SavedPositions take_kept();

  // The scheduler's side.
  void take_positions(const PositionCopies& copies, uint32_t slot) override;
  const MovedPositions* moved() const override { return moved_.get(); }
  TextMasks* masks() const override { return masks_.get(); }
  const std::vector<uint32_t>& chosen() const override { return tokens_; }
  void take_tokens(std::span<const uint32_t> tokens) override;
  void take_logprobs(std::span<const TokenLogprobs> logprobs) override;
  void take_given_logprobs(uint32_t first_row, std::span<const TokenLogprobs> logprobs) override;
  uint32_t n_scored() const override { return n_scored_; }
  std::span<float> logits_of(uint32_t, uint32_t) override { return {}; }

 protected:
  void let_go() override { moved_.reset(); }
  bool has_news() const override { return taken_ < tokens_.size(); }

 private:
  using Clock = std::chrono::steady_clock;

  const std::unique_ptr<TextMasks> masks_;
  std::vector<uint32_t> tokens_;  // capacity max_chosen
  size_t taken_ = 0;
  std::vector<TokenLogprobs> logprobs_;        // of tokens_; capacity max_chosen where wanted
  std::vector<TokenLogprobs> given_logprobs_;  // of the tokens given but the first, where wanted
  uint32_t n_scored_ = 0;
  std::shared_ptr<const MovedPositions> moved_;
  const uint32_t n_moved_, n_exact_;
  SavedPositions kept_;
  Clock::time_point requested_ = Clock::now();
  std::vector<Clock::time_point> times_;  // of each token; capacity max_chosen
};

}  // namespace akunu
