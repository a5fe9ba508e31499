// The programs of a prediction head (prediction_head.h), over the rows of a step, once the tokens after them are known.
#pragma once

#include <array>

#include "core/device.h"
#include "inference/program_compiler.h"

namespace akunu {

struct AheadPrograms {
  struct OfClass {
    Program body;
    Program logits;  // where those of the model itself lie
  };

  AheadPrograms() = default;
  explicit AheadPrograms(ProgramCompiler& compiler);

  const OfClass& of(RowClass row_class) const { return by_class[static_cast<size_t>(row_class)]; }

  std::array<OfClass, 3> by_class = {};
  Program choose;
};

}  // namespace akunu
