// Model: a model's weights with a context and its programs, ready to compute; what runs on it is the scheduler's business.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inference/context.h"
#include "inference/programs.h"
#include "inference/step.h"
#include "inference/weights.h"

namespace akunu {

class Model {
 public:
  // Throws what load_weights and the constructor throw.
  static std::unique_ptr<Model> load(const std::string& path, std::shared_ptr<Device> device,
                                     const LoadOptions& options);
  // Likewise, of what a reader has read.
  static std::unique_ptr<Model> load(const ModelSource& source, std::shared_ptr<Device> device,
                                     const LoadOptions& options);
  // A context over weights that are loaded; see Context.
  static std::unique_ptr<Model> over(std::shared_ptr<const Weights> weights,
                                     std::shared_ptr<Device> device, const LoadOptions& options);
  Model(std::shared_ptr<const Weights> weights, std::shared_ptr<Device> device,
        const LoadOptions& options)
      : context_(std::move(weights), std::move(device), options), programs_(context_) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Context& own_context() const { return context_; }
  const Programs& own_programs() const { return programs_; }
  const std::shared_ptr<const Weights>& weights() const { return context_.weights; }
  const ModelConfig& config() const { return weights()->config; }
  const ArchDescriptor& arch() const { return weights()->arch; }
  // What was decided that the caller might not expect, in one line each.
  std::vector<std::string> notes() const;
  uint32_t context() const { return context_.n_positions(); }
  Device& device() { return *context_.device; }
  const Device& device() const { return *context_.device; }

  KvCache& cache() { return context_.cache; }
  const KvCache& cache() const { return context_.cache; }
  SequenceStore& sequences() { return context_.sequences; }
  const SequenceStore& sequences() const { return context_.sequences; }
  const ClassPrograms& programs(RowClass row_class, bool adapted = false) const {
    return programs_.of(row_class, adapted);
  }
  const AheadPrograms& ahead() const { return programs_.ahead; }
  const Adapters& adapters() const { return weights()->adapters; }
  Program first_convolution() const { return programs_.first_convolution; }
  Program encode() const { return programs_.encode; }
  Binding frames() const { return context_.frames.binding(); }
  Binding encoded() const { return programs_.encoded; }
  Program encode_image() const { return programs_.encode_image; }
  Program project_image() const { return programs_.project_image; }
  Binding patches() const { return context_.patches.binding(); }
  Binding image_vectors() const { return programs_.image_vectors; }
  Binding vectors(uint32_t row) const { return context_.vectors_of(row); }
  Program aligned() const { return programs_.aligned; }
  Binding alignment() const { return context_.alignment.binding(); }
  uint32_t alignment_width() const { return context_.sizes.alignment_width; }
  Program choose() const { return programs_.choose; }
  Program choose_scored() const { return programs_.choose_scored; }
  bool has_prediction_head() const { return arch().n_ahead > 0; }
  Binding logits() const { return programs_.logits; }
  uint32_t output_width() const { return weights()->output_width(); }
  bool classifies() const { return weights()->classifies(); }
  Binding picked() const { return context_.picked.binding(); }
  Binding mask(uint32_t head_row) const { return context_.mask(head_row); }
  uint64_t mask_bytes() const { return context_.sizes.mask_bytes; }
  uint32_t max_texts() const { return context_.sizes.max_texts; }
  uint32_t max_generated_rows() const { return context_.sizes.max_generated_rows; }
  uint32_t generated_rows_per_pass() const { return programs_.passes.generated_rows_per_pass; }
  uint32_t max_prompt_rows() const { return context_.sizes.max_prompt_rows; }
  uint32_t max_rows() const { return context_.sizes.max_rows; }
  uint32_t max_step_rows() const { return context_.sizes.max_step_rows; }
  uint32_t max_scratch_rows() const { return context_.sizes.max_scratch_rows; }
  uint32_t max_head_rows() const { return context_.sizes.max_head_rows; }
  const SubmissionLimits& submission_limits() const { return context_.submission_limits; }
  uint64_t sequence_update_bytes() const { return context_.sequence_update_bytes(); }
  uint32_t chain_steps() const { return context_.sizes.chain_steps; }
  uint32_t max_rows_in_flight() const { return context_.sizes.max_rows_in_flight; }
  uint64_t weight_bytes() const { return weights()->tensors->bytes(); }
  std::vector<std::byte> frequencies() const { return context_.frequencies.bytes(); }
  bool rotates() const { return !rotations().empty(); }
  const std::vector<OwnedProgram>& rotations() const { return programs_.rotations.programs(); }
  void write_turns(double positions) { programs_.rotations.write_turns(positions); }
  void check_files() const { weights()->check_files(); }
  const std::vector<std::string>& labels(RowClass row_class) const {
    return programs_.passes.labels[static_cast<size_t>(row_class)];
  }

 private:
  Context context_;
  Programs programs_;
};

inline Outcome await(const Model& model, Ticket ticket) {
  return await(model.own_context(), ticket);
}
inline void await_all_well(const Model& model, Ticket ticket) {
  await_all_well(model.own_context(), ticket);
}

}  // namespace akunu
