// The forward passes of a model, before they are programs: one for each row class, fused, with what a device has
// no kernel for refused.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "cache/groups.h"
#include "core/forward.h"
#include "inference/step_sizes.h"

namespace akunu {

inline constexpr std::array kRowClasses{RowClass::single, RowClass::few, RowClass::many};

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

  // Of the values that have no memory yet.
  uint64_t scratch_bytes(const StepSizes& sizes) const;
};

// Bindings are empty: good for sizes and names only.
ForwardMemory memory_without_buffers(const ArchDescriptor& arch,
                                     std::span<const GroupShape> groups);

}  // namespace akunu
