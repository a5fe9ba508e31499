// Programs: the forward passes of a model, compiled for one context. Steps run them (step.h).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "inference/adapted_programs.h"
#include "inference/ahead_programs.h"
#include "inference/context.h"
#include "inference/encoder_programs.h"
#include "inference/key_rotations.h"
#include "inference/program_compiler.h"

namespace akunu {

// The programs of one row class.
struct ClassPrograms {
  Program body;
  Program logits;
};

struct Programs {
  // The context must outlive them.
  explicit Programs(const Context& context) : Programs(ProgramCompiler(context, false)) {}
  // The compiler may have compiled more, for others.
  explicit Programs(ProgramCompiler&& compiler);
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  const ClassPrograms& of(RowClass row_class) const {
    return by_class[static_cast<size_t>(row_class)];
  }
  // With `is_adapted`, the one that adds to rows what their adapters say. A row without one has the same
  // bits from both.
  Program body(RowClass row_class, bool is_adapted) const {
    return is_adapted ? adapted->body(row_class) : of(row_class).body;
  }
  Program of_image_rows(size_t part, bool is_adapted) const {
    return is_adapted ? adapted->of_image_rows(part) : image_rows[part];
  }
  uint32_t generated_rows_per_pass() const {
    return adapted ? std::min(passes.generated_rows_per_pass, adapted->generated_rows_per_pass())
                   : passes.generated_rows_per_pass;
  }
  // Labels of the commands that one row of a class runs, in order: what a launch count is made of.
  const std::vector<std::string>& labels(RowClass row_class) const {
    return passes.labels[static_cast<size_t>(row_class)];
  }

  std::array<ClassPrograms, 3> by_class = {};
  Program choose;
  Program choose_scored;  // of rows of which some are scored
  Binding logits;         // float32 [max_head_rows, output_width]
  AheadPrograms ahead;
  KeyRotations rotations;
  // The body of prompts that also writes cross-attention's weights of rows with a head row, if the model
  // names alignment heads.
  Program aligned;
  EncoderPrograms encoder;                         // of images or speech
  std::vector<Program> image_rows;                 // see Forward::image_rows
  CompiledPasses passes;                           // owns all of these
  std::unique_ptr<const AdaptedPrograms> adapted;  // null: no adapter is loaded
};

}  // namespace akunu
