// What a submission has made goes to the tasks whose rows ran.
#pragma once

#include <span>
#include <vector>

#include "cache/sequence_cache.h"
#include "inference/active.h"
#include "inference/context.h"
#include "inference/prediction_head.h"
#include "inference/programs.h"
#include "inference/step.h"

namespace akunu {

class Results {
 public:
  // `most_steps`: that a submission has.
  // `head`: of the model, null where there is none.
  Results(Context& context, const Programs& programs, SequenceCache& cache, uint32_t most_steps,
          PredictionHead* head);

  enum class State : uint8_t { goes_on, is_over, is_bad };
  // After a submission of so many steps: hands over what the task wanted of them and counts the
  // positions that are in the cache now. A bad row ends its own task, with an error that tells which
  // and why, after the tokens that came before it. `statuses`: those of the outcome.
  State take(Active& active, const Step& step, uint32_t n_steps, std::span<const Status> statuses);

  // Of all texts, tokens drafted because they were likely, and of them those that were chosen.
  uint64_t n_drafted() const { return n_drafted_; }
  uint64_t n_held() const { return n_held_; }

 private:
  State take_good(Active& active, const Step& step, uint32_t n_steps);
  State take_late(Active& active, std::span<const Status> statuses);
  State take_chain(Active& active, uint32_t n_steps);
  State take_drafted(Active& active, std::span<const Status> statuses);
  State take_tokens(Active& active, std::span<const uint32_t> tokens);
  State fail(Active& active, const Status& status);
  void finish_at_length(const Active& active);
  static uint32_t n_accepted(const Active& active, std::span<const uint32_t> tokens);

  // Of so many positions of a sequence, in a ring's worth of them.
  std::span<const TokenLogprobs> read_logprobs(uint32_t slot, uint32_t position, uint32_t n);

  Context& context_;
  const Programs& programs_;
  SequenceCache& cache_;
  PredictionHead* const head_;
  std::vector<uint32_t> tokens_;
  std::vector<TokenLogprobs> logprobs_;
  uint64_t n_drafted_ = 0, n_held_ = 0;
};

}  // namespace akunu
