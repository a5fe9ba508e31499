#include "inference/step_sizes.h"

#include <algorithm>

#include "core/error.h"
#include "core/kernel_params.h"
#include "core/rows.h"

namespace akunu {
namespace {

// Windows of speech, each with a text, for which there is a cache where nobody says how large it is.
constexpr uint32_t kUsualWindows = 6;
// Of each. With pages for fewer, beams of one window would push out those of another at every step.
constexpr uint32_t kUsualBeams = 5;

uint32_t prompt_rows(const ArchDescriptor& arch, const ChipConfig& chip,
                     const LoadOptions& options) {
  if (options.context && *options.context == 0)
    throw ArgumentError("context is 0; it must be at least 1 position");
  uint32_t n = chip.max_prompt_rows;
  if (arch.embeds)
    n = std::max(n, std::min(options.context.value_or(arch.context_length), arch.context_length));
  // All rows of an image that see each other have pages and vectors at the same time.
  if (arch.images && arch.images->is.sees_later_rows) n = std::max(n, arch.images->n_tokens());
  return n;
}

}  // namespace

StepSizes::StepSizes(const ArchDescriptor& arch, const ChipConfig& chip, const LoadOptions& options,
                     uint64_t weight_bytes)
    : max_texts(chip.max_texts),
      max_generated_rows(max_texts + kMaxFewRows),
      max_prompt_rows(prompt_rows(arch, chip, options)),
      max_step_rows(max_generated_rows + max_prompt_rows),
      max_scratch_rows(std::max(max_step_rows, arch.audio ? arch.audio->n_positions : 0)),
      max_rows(std::max({max_scratch_rows, arch.audio ? arch.audio->n_frames() : 0,
                         arch.images ? arch.images->n_patches() : 0})),
      max_head_rows(max_texts + (arch.embeds ? max_prompt_rows : chip.max_head_rows)) {
  const uint64_t steps = chip.chain_bytes / std::max<uint64_t>(1, weight_bytes);
  chain_steps =
      static_cast<uint32_t>(std::clamp<uint64_t>(steps, 1, std::max(1u, chip.chain_steps)));
  max_rows_in_flight =
      std::max({max_prompt_rows, max_generated_rows, chain_steps * (1 + chip.submissions_ahead)});
  if (!arch.embeds) mask_bytes = mask_words(arch.vocab_size) * uint64_t{sizeof(uint32_t)};
  if (arch.audio) {
    alignment_width = arch.audio->n_alignment_heads() * arch.audio->n_positions;
    alignment_bytes = uint64_t{max_head_rows} * alignment_width * sizeof(float);
    frames_bytes = uint64_t{arch.audio->n_frames()} * arch.audio->n_mels * sizeof(float);
  }
  if (arch.images) {
    patches_bytes =
        uint64_t{arch.images->n_patches()} * arch.images->patch_numbers() * sizeof(float);
    vectors_bytes = uint64_t{max_step_rows} * arch.dim * sizeof(float);
  }
}

ContextNeeds context_needs(const ArchDescriptor& arch, const StepSizes& sizes,
                           const LoadOptions& options, uint64_t scratch_bytes) {
  ContextNeeds needs{.trained_context = arch.context_length,
                     .has_no_more = arch.embeds,
                     .groups = cache_groups(arch, options.kv_format),
                     .n_rows = sizes.max_rows_in_flight,
                     .max_texts = sizes.max_texts,
                     .masks = sizes.masks_bytes(),
                     .usual_contexts = arch.audio ? kUsualWindows : 1,
                     .branches = arch.audio ? kUsualBeams - 1 : 0};
  needs.fixed =
      scratch_bytes +
      uint64_t{sizes.max_rows} * (sizeof(Row) + sizeof(Span) + sizeof(Status) + sizeof(uint32_t)) +
      needs.masks + sizes.frames_bytes + sizes.alignment_bytes + sizes.patches_bytes +
      sizes.vectors_bytes;
  return needs;
}

}  // namespace akunu
