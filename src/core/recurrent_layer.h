// What all recurrent layers have: a page of a text's states and of the last inputs of the causal convolution in
// front of the recurrence.
#pragma once

#include <string>

#include "core/emitter.h"

namespace akunu {

// Values of a layer's caches, and where their page table begins.
struct RecurrentCaches {
  ValueId inputs, states;
  uint32_t n_kept_inputs;  // positions
  uint32_t page_table_stride, page_table_base;
};

// Numbers of a row that are convolved, within a row of others.
struct Convolved {
  ValueId input;
  uint32_t n;
  uint32_t width;   // of the convolution, in rows
  uint32_t stride;  // numbers of a row of `input`
  uint32_t first;   // of these in it
};

// Returns silu(convolution + bias), [n]. `name` and `label` are how tensors and commands begin.
ValueId emit_causal_convolution(Emitter& emitter, const std::string& name, const std::string& label,
                                const Convolved& convolved, const RecurrentCaches& caches);

}  // namespace akunu
