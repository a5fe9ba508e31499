// The masks of a step: which tokens rows with a constraint may choose. They are filled while a
// GPU computes the logits; a CPU computes them when it is waited for, afterwards.
#pragma once

#include <span>
#include <vector>

#include "inference/active.h"
#include "inference/model.h"
#include "inference/step.h"

namespace akunu {

class Masks {
 public:
  explicit Masks(const Model& model);

  // Fills those of the step's rows and has the step send them. A constraint that cannot tell them has
  // an error from then on, and its text may choose anything, which is not used.
  void fill(std::span<const Active> actives, Step& step);

 private:
  const Model& model_;
  const size_t n_words_;  // of a mask
  std::vector<uint32_t> words_;
};

}  // namespace akunu
