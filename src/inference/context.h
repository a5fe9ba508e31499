// Context: what a text needs next to a model's weights and programs: the cache and what the device knows of each text,
// in the requested sizes. All of it is decided and allocated before the first token. Several contexts may
// share one model's weights; each has its own share of the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/sequence_store.h"
#include "core/device.h"
#include "core/forward.h"
#include "inference/adapters.h"
#include "inference/context_plan.h"
#include "inference/frequencies.h"
#include "inference/step_sizes.h"
#include "inference/weights.h"

namespace akunu {

struct Context {
  // `device`: that of the weights, or another share of it where they have a context already (Device::share). Refuses what
  // cannot be computed before it takes memory for the cache. Throws UnsupportedModelError, ModelFormatError,
  // OutOfMemoryError and ArgumentError.
  Context(std::shared_ptr<const Weights> of, std::shared_ptr<Device> on, const LoadOptions& options,
          AdaptersOnDevice loaded = {});
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ArchDescriptor& arch() const { return weights->arch; }
  uint32_t n_positions() const { return plan.context; }  // of a text
  const std::vector<std::string>& notes() const { return plan.notes; }

  // What the forward pass has there.
  ForwardMemory forward_memory() const;
  StepMemory step_memory() const;
  // The tokens that a row with kRowMasked may choose, by its head row: mask_words(vocab_size) words,
  // which may be written between the logits and the choice of a step.
  Binding mask(uint32_t head_row) const { return masks.binding(head_row * sizes.mask_bytes); }
  // Where rows of a step read an image's vectors.
  Binding vectors_of(uint32_t row) const {
    return vectors.binding(uint64_t{row} * weights->arch.dim * sizeof(float));
  }
  // Records, options and tokens of sequences that begin in one step; one has room, and several
  // short ones.
  uint64_t sequence_update_bytes() const {
    return sizeof(SequenceRecord) +
           (uint64_t{kMaxOptionWords} + sequences.log_stride()) * sizeof(uint32_t);
  }

  std::shared_ptr<const Weights> weights;
  std::shared_ptr<Device> device;
  CurrentAdapters adapters;
  StepSizes sizes;
  std::vector<GroupShape> groups;  // of the cache
  Frequencies frequencies;
  ContextPlan plan;
  KvCache cache;
  SequenceStore sequences;
  OwnedBuffer rows, spans, picked, masks, statuses;
  OwnedBuffer frames;            // of a speech model: float32 [frames, n_mels]
  OwnedBuffer patches, vectors;  // of a model that reads images, as ForwardMemory has them
  OwnedBuffer alignment;         // float32 [max_head_rows, alignment_width]
  SubmissionLimits submission_limits;
};

}  // namespace akunu
