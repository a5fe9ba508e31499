// What one step of a context can hold, in rows and texts, and the memory that this needs. It follows from the
// model, the device and the options, before there is any memory.
#pragma once

#include <cstdint>

#include "core/arch.h"
#include "core/chip.h"
#include "inference/context_plan.h"

namespace akunu {

// Every text under way has a row that generates; next to them there is room for a group of rows that were
// generated before, for prompts, and for logits of many rows.
struct StepSizes {
  // `weight_bytes`: of the model; 0: not known yet. Throws ArgumentError for a context of no position.
  StepSizes(const ArchDescriptor& arch, const ChipConfig& chip, const LoadOptions& options,
            uint64_t weight_bytes);

  uint32_t max_texts = 0;
  uint32_t max_generated_rows = 0;
  // A text of an encoder is in one step whole, and may want a vector of each row.
  uint32_t max_prompt_rows = 0;
  uint32_t max_step_rows = 0;
  // Rows of values: more than those of a step where an encoder has more.
  uint32_t max_scratch_rows = 0;
  // The values of a window's frames say themselves that they need more than scratch has rows.
  uint32_t max_rows = 0;
  uint32_t max_head_rows = 0;
  // Steps of one row that a submission may hold; see ChipConfig.
  uint32_t chain_steps = 0;
  // The most rows of one sequence in flight: those of a prompt, or of submitted chains.
  uint32_t max_rows_in_flight = 0;
  // Numbers of a row's weights of cross-attention, where the model names alignment heads.
  uint32_t alignment_width = 0;

  uint64_t mask_bytes = 0;  // of a head row
  uint64_t frames_bytes = 0;
  uint64_t patches_bytes = 0;
  uint64_t vectors_bytes = 0;
  uint64_t alignment_bytes = 0;
  uint64_t masks_bytes() const { return max_head_rows * mask_bytes; }
};

// What a context needs in addition to `scratch_bytes`.
ContextNeeds context_needs(const ArchDescriptor& arch, const StepSizes& sizes,
                           const LoadOptions& options, uint64_t scratch_bytes);

}  // namespace akunu
