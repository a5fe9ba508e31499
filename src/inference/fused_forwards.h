// The forward passes of a model, before they are programs: one for each row class, fused, with what a device has
// no kernel for refused.
#pragma once

#include <array>
#include <vector>

#include "core/forward.h"

namespace akunu {

constexpr std::array kRowClasses{RowClass::single, RowClass::few, RowClass::many};

// A part of a pass that ends where a matmul's input is complete, in floats too.
struct ObservedPart {
  std::vector<Node> nodes;
  ValueId weight;
  ValueId input;
  ValueId routes;            // kNoValue: of one matrix
  ExpertMatmulParams stack;  // of one matrix: a stack of one
};

// One forward pass per row class: kinds of activations and what fuses depend on it. Nothing fuses
// in a model that is observed.
struct FusedForwards {
  Values values;
  std::array<Forward, 3> by_class;
  std::array<Forward, 3> adapted;      // empty where there are no adapters
  std::vector<ObservedPart> observed;  // of a prompt's body; empty unless it is asked for
  std::vector<bool> used;              // values that are an operand somewhere

  // Throws UnsupportedModelError and ModelFormatError.
  FusedForwards(const ArchDescriptor& arch, const TensorMap& tensors,
                const std::vector<Binding>& inverse_frequencies, const ForwardMemory& memory,
                const Device& device, bool is_observed, const AdapterTargets& adapters);
};

}  // namespace akunu
