// The feed-forward network of a layer with experts: a router, those experts of a stack of weights that
// it chooses for each row, and one more for all rows where the model has one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/emitter.h"

namespace akunu {

// A layer, and how the network's tensors ("layers.3.ffn.") and the layer's commands begin.
struct ExpertLayer {
  const FeedForward& is;  // with experts
  std::string name, label;
  ValueId router_input = kNoValue;  // where the router reads something else than the experts
};

// The kinds in which its weights want their input, the normed residual.
std::vector<ActivationKind> expert_input_kinds(const Emitter& emitter, const ExpertLayer& layer);

// Emits it for an input in these kinds, and returns what it adds to the residual.
ValueId emit_experts(Emitter& emitter, const ExpertLayer& layer,
                     const std::map<ActivationKind, ValueId>& inputs);

}  // namespace akunu
