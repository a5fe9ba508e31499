// A layer with the gated delta rule: a convolution along the text, the recurrence of a state for each head, and
// a norm of each head in front of a gate.
#pragma once

#include <string>

#include "core/recurrent_layer.h"

namespace akunu {

struct DeltaRuleLayer {
  const DeltaRule& is;
  std::string name, label;  // how tensors ("layers.3.delta.") and commands ("layer 3 ") begin
  std::string output;       // the projection behind it: "layers.3.delta.output"
  ValueId input;            // [convolved]: queries, keys and values
  ValueId gate;             // [values]
  ValueId a, b;  // [n_decays], [n_value_heads]: what of a state is kept, and what is added
  float norm_epsilon;
  RecurrentCaches caches;
};

// Returns what the heads recall for a row, [values], in the kind that the projection of the output wants.
ValueId emit_delta_rule(Emitter& emitter, const DeltaRuleLayer& layer);

}  // namespace akunu
