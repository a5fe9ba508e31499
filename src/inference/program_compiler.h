// Builds the forward passes over a context's memory, and compiles them, part by part.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cache/scratch.h"
#include "core/device.h"
#include "inference/context.h"
#include "inference/fused_forwards.h"

namespace akunu {

// What owns compiled programs, and the memory of values that live within a step.
struct CompiledPasses {
  Scratch scratch;
  std::vector<OwnedProgram> programs;
  // Of the commands that one row of a class runs, in order.
  std::array<std::vector<std::string>, 3> labels = {};
  uint32_t generated_rows_per_pass =
      kMaxFewRows;  // as many as the chip says and all kernels of such a pass take
};

class ProgramCompiler {
 public:
  // `is_observed`: nothing is fused, and the inputs of matmuls can be looked at.
  ProgramCompiler(const Context& context, bool is_observed);

  const FusedForwards& fused() const { return fused_; }
  const Forward& forward(RowClass row_class) const {
    return fused_.by_class[static_cast<size_t>(row_class)];
  }
  Binding binding(ValueId value) const { return passes_.scratch.bindings()[value]; }

  // Its labels are added to those of the class.
  Program compile(const std::vector<Node>& nodes, RowClass row_class);
  // Of a program that not every step runs: without labels.
  Program compile_another(const std::vector<Node>& nodes, RowClass row_class);

  const Context& context() const { return context_; }
  // What was compiled; nothing more can be.
  CompiledPasses take() { return std::move(passes_); }

 private:
  Program compile(const std::vector<Node>& nodes, RowClass row_class, bool has_labels);

  const Context& context_;
  const FusedForwards fused_;
  CompiledPasses passes_;
};

}  // namespace akunu
