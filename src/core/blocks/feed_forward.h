// The feed-forward network of a layer: down(activation(gate(x)) * up(x)), or without a gate down(activation(up(x))).
#pragma once

#include <cstdint>
#include <optional>

#include "core/activation.h"
#include "core/blocks/experts.h"

namespace akunu {

struct FeedForward {
  bool is_gated = true;
  Activation activation = Activation::silu;
  uint32_t dim = 0;  // numbers between the projections
  // Activation sparsity (Gemma 3n): gate = max(gate - (mean + gate_cut * standard deviation), 0) over a row.
  std::optional<float> gate_cut = {};
  float gate_factor = 1;  // of the gate, before its activation
  float factor = 1;       // of the result, before it is added to the residual
  // Instead of one network of `dim` numbers, or in addition to it (Experts::beside_dense).
  std::optional<Experts> experts = {};
};

}  // namespace akunu
