// The prediction head of a model, as a drafter: a layer behind the last, which makes of a row's last hidden state, and of the
// token behind it, a guess at the token behind that (core/forward_ahead.cpp). It runs behind every step, over the rows
// of that step: what they left is still in scratch. So it has keys and values of every position of a prompt, and of what
// texts generate that it drafts for; they lie in pages of the model's own cache.
//
// What it proposes is drafted as other drafts are: it changes how many rows a step has, and never a text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inference/active.h"
#include "inference/context.h"
#include "inference/programs.h"
#include "inference/speculation.h"
#include "inference/step.h"

namespace akunu {

class PredictionHead {
 public:
  // Tokens that it proposes of a text at a time.
  static constexpr uint32_t kMost = 1;

  // Both must outlive this; the model has one.
  PredictionHead(Context& context, const Programs& programs)
      : context_(context), programs_(programs) {}

  // Behind a step whose results were taken, and before a sequence of it ends: runs the head over the rows that
  // count, and leaves in `actives` what it proposes. Returns the seconds that it took.
  double run(std::span<Active> actives, Step& step);

  // What its token costs one text in a step.
  ModelOffer offer() const { return {.seconds = {0, seconds_}, .most = kMost}; }

  // How often its tokens held, as of all texts so far.
  double held() const { return held_; }
  void checked(uint32_t n_drafted, uint32_t n_held);

 private:
  // Rows of one text in the step.
  struct Planned {
    Active* active = nullptr;
    uint32_t first_position = 0;  // that has logits of the head
    uint32_t first_row = 0;       // likewise
    uint32_t n_rows = 0;
    bool drafts = false;  // a token is chosen of the last one's
  };

  void plan(Active& active, Step& step);
  void take(const Planned& planned, const Step& step, std::span<const Status> statuses);

  Context& context_;
  const Programs& programs_;
  std::vector<Planned> planned_;
  double seconds_ = 0;  // of a step with rows that generate alone; 0: not known
  double held_ = kHeldByModel;
};

}  // namespace akunu
