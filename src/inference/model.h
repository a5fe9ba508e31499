// Model: a file, loaded. Device, weights, cache and compiled programs, all of it decided and
// allocated before the first token; what runs on it is the scheduler's business.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/pages.h"
#include "cache/scratch.h"
#include "cache/sequences.h"
#include "core/arch.h"
#include "core/device.h"
#include "inference/adapters.h"
#include "inference/context_plan.h"
#include "inference/encoder_pass.h"
#include "inference/weight_placement.h"
#include "inference/weights.h"

namespace akunu {

// The programs of one row class.
struct ClassPrograms {
  Program body;
  Program logits;
  Program ahead;  // of a prediction head, over the same rows, once the tokens behind them are known
  Program ahead_logits;
};

// A part of the pass of a prompt, unfused, that ends where the input of a matmul is complete.
struct Observation {
  Program program;
  std::string weight;  // in the file
  Binding input;       // float32 [rows * n_inputs, k]
  uint32_t k = 0;
  uint32_t n_inputs = 1;    // of a row: one for all of its experts, or one for each
  uint32_t n_matrices = 1;  // experts of a stack
  uint32_t n_chosen = 1;    // matrices that a row goes to
  std::optional<Binding> routes = std::nullopt;  // ExpertRoute [rows, n_chosen], of a stack
};

class Model {
 public:
  // Succeeds, or throws ModelFormatError, UnsupportedModelError, DeviceError, OutOfMemoryError or
  // ArgumentError. `notes` tell in one line each what was decided that the caller might not expect.
  static std::unique_ptr<Model> load(const std::string& path, std::shared_ptr<Device> device,
                                     const LoadOptions& options);
  // Likewise, of what a reader has read.
  static std::unique_ptr<Model> load(const ModelSource& source, std::shared_ptr<Device> device,
                                     const LoadOptions& options);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const { return config_; }
  const ArchDescriptor& arch() const { return arch_; }
  const std::vector<std::string>& notes() const { return notes_; }
  uint32_t context() const { return sequences_->context(); }
  Device& device() { return *device_; }
  const Device& device() const { return *device_; }

  KvCache& cache() { return *cache_; }
  const KvCache& cache() const { return *cache_; }
  SequenceStore& sequences() { return *sequences_; }
  const SequenceStore& sequences() const { return *sequences_; }
  // With `adapted`, those that add to rows what their adapters say. A row without one has the same
  // bits from both.
  const ClassPrograms& programs(RowClass row_class, bool adapted = false) const {
    return (adapted ? adapted_programs_ : programs_)[static_cast<size_t>(row_class)];
  }
  const Adapters& adapters() const { return adapters_; }
  // Of images or speech.
  const EncoderPrograms& encoder() const { return encoder_; }
  // Where rows of a step read an image's vectors.
  Binding vectors(uint32_t row) const {
    return vectors_.binding(uint64_t{row} * arch_.dim * sizeof(float));
  }
  // The body of prompts that also writes cross-attention's weights of rows with a head row, if the model
  // names alignment heads; and those weights, float32 [max_head_rows, alignment_width].
  Program aligned() const { return aligned_; }
  Binding alignment() const { return alignment_.binding(); }
  uint32_t alignment_width() const {
    return arch_.audio ? arch_.audio->n_alignment_heads() * arch_.audio->n_positions : 0;
  }
  Program choose() const { return choose_; }
  Program choose_scored() const { return choose_scored_; }  // of rows of which some are scored
  Program choose_ahead() const { return choose_ahead_; }    // of a prediction head's logits
  bool has_prediction_head() const { return arch_.n_ahead > 0; }
  Binding logits() const { return logits_; }  // float32 [max_head_rows, output_width]
  // Numbers of a row that comes out: logits, or an encoder's vector.
  uint32_t output_width() const { return akunu::output_width(arch_, weights_->tensors()); }
  // Whether what comes out are scores of a classifier.
  bool classifies() const { return weights_->tensors().contains("head.output.weight"); }
  Binding picked() const { return picked_.binding(); }
  // The tokens that a row with kRowMasked may choose, by its head row: mask_words(vocab_size) words,
  // which may be written between the logits and the choice of a step.
  Binding mask(uint32_t head_row) const { return masks_.binding(head_row * mask_bytes()); }
  uint64_t mask_bytes() const {
    if (arch_.embeds) return 0;
    return mask_words(arch_.vocab_size) * uint64_t{sizeof(uint32_t)};
  }

  // What one step can hold. Every text under way has a row that generates; beside them there is
  // room for a group of rows that were generated before, for prompts, and for logits of many rows.
  uint32_t max_texts() const { return device_->chip().max_texts; }
  uint32_t max_generated_rows() const { return max_texts() + kMaxFewRows; }
  // As many as the chip says and all kernels of such a pass take.
  uint32_t generated_rows_per_pass() const { return generated_rows_per_pass_; }
  // A text of an encoder is in one step whole, and may want a vector of each row.
  uint32_t max_prompt_rows() const { return max_prompt_rows_; }
  uint32_t max_rows() const {
    return std::max(max_scratch_rows(), arch_.audio ? arch_.audio->n_frames() : 0);
  }
  uint32_t max_step_rows() const { return max_generated_rows() + max_prompt_rows_; }
  // The values of a window's frames say themselves that they need more.
  uint32_t max_scratch_rows() const {
    return std::max({max_step_rows(), arch_.audio ? arch_.audio->n_positions : 0,
                     arch_.images ? arch_.images->n_patches() : 0});
  }
  uint32_t max_head_rows() const {
    return max_texts() + (arch_.embeds ? max_prompt_rows_ : device_->chip().max_head_rows);
  }
  const SubmissionLimits& submission_limits() const { return limits_; }
  // Records, options and tokens of sequences that begin in one step; one has room, and several
  // short ones.
  uint64_t sequence_update_bytes() const {
    return sizeof(SequenceRecord) +
           (uint64_t{kMaxOptionWords} + sequences_->log_stride()) * sizeof(uint32_t);
  }

  // Steps of one row that a submission may hold; see ChipConfig.
  uint32_t chain_steps() const {
    const ChipConfig& chip = device_->chip();
    const uint64_t bytes = weights_ ? weights_->bytes() : 0;
    const uint64_t steps = chip.chain_bytes / std::max<uint64_t>(1, bytes);
    return static_cast<uint32_t>(std::clamp<uint64_t>(steps, 1, std::max(1u, chip.chain_steps)));
  }

  // Rows of one sequence that are in flight at a time: of a prompt, or of chains that were submitted.
  uint32_t max_rows_in_flight() const {
    const ChipConfig& chip = device_->chip();
    return std::max(
        {max_prompt_rows_, max_generated_rows(), chain_steps() * (1 + chip.submissions_ahead)});
  }

  uint64_t weight_bytes() const { return weights_->bytes(); }

  // How positions turn, float32: of each kind of layer that rotates, one after the other. They depend on
  // the model and, in some, on the context.
  std::vector<std::byte> frequencies() const;

  // Whether keys in the cache can turn to other positions; and the programs that turn those of a cache
  // group's rows, by as much as write_turns said last. A group whose keys have no positions has none.
  bool rotates() const { return !rotations_.empty(); }
  const std::vector<Program>& rotations() const { return rotations_; }
  // By so many positions; with no submission in flight.
  void write_turns(double positions);

  // Throws DeviceError when a file that the device reads was cut or cannot be read any more: what
  // was computed since is worth nothing, and neither is the model.
  void check_files() const;

  // The parts of a prompt's body in their order, up to the last matmul; empty unless the model was
  // loaded for it. For programs that look into a model: nothing is fused then.
  const std::vector<Observation>& observations() const { return observations_; }

  // Labels of the commands that one row of a class runs, in order: what a launch count is made of.
  const std::vector<std::string>& labels(RowClass row_class) const {
    return labels_[static_cast<size_t>(row_class)];
  }

 private:
  explicit Model(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  void size_steps(const LoadOptions& options);
  void import(const ModelSource& source, const LoadOptions& options);
  void divide(ModelSource& source, const LoadOptions& options);
  WeightPlacement place(const ModelSource& source, const LoadOptions& options);
  MemoryLeft memory_left(const LoadOptions& options) const;
  ContextNeeds context_needs(uint64_t scratch_bytes) const;
  void describe_layers();
  void import_adapters(const LoadOptions& options);
  void note_threads();
  void plan(const LoadOptions& options);
  void find_alignment_heads(const LoadOptions& options);
  uint64_t frames_bytes() const;
  uint64_t patches_bytes() const;
  uint64_t vectors_bytes() const;
  uint64_t alignment_bytes() const {
    return uint64_t{max_head_rows()} * alignment_width() * sizeof(float);
  }
  void allocate();
  void compile();
  void compile_rotations(const ForwardMemory& memory, const StepMemory& step);

  std::vector<Binding> place_frequencies();
  void place_ones();
  void read_output_scales();
  std::optional<std::string_view> rope_factors();
  void write_frequencies();

  std::shared_ptr<Device> device_;
  ModelConfig config_;
  ArchDescriptor arch_;
  std::vector<std::string> notes_;
  std::unique_ptr<Weights> weights_;
  Adapters adapters_;
  std::vector<OwnedBuffer> frequencies_;
  std::vector<Binding> layer_frequencies_;
  OwnedBuffer ones_;                // as ForwardMemory has them; empty where nothing reads them
  std::vector<OwnedBuffer> turns_;  // float32 [2 * pairs] for each of frequencies_
  std::vector<Program> rotations_;  // of each cache group; empty where keys cannot turn
  uint32_t context_ = 0;
  uint32_t max_prompt_rows_ = 0;
  uint32_t generated_rows_per_pass_ = kMaxFewRows;
  uint64_t host_weight_bytes_ = 0;  // of weights in the host's memory, where the device has its own
  uint64_t kept_free_ = 0;          // of the device's memory, for what reads them
  std::vector<GroupShape> groups_;  // of the cache
  std::vector<uint32_t> n_pages_;   // of each group
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<SequenceStore> sequences_;
  std::unique_ptr<Scratch> scratch_;
  OwnedBuffer picked_, masks_, rows_, spans_, statuses_, frames_, alignment_, patches_, vectors_;
  SubmissionLimits limits_;
  bool is_observed_ = false;
  std::vector<Observation> observations_;
  std::array<ClassPrograms, 3> programs_ = {}, adapted_programs_ = {};
  std::array<std::vector<std::string>, 3> labels_;
  Program choose_, choose_scored_, choose_ahead_, aligned_;
  EncoderPrograms encoder_;
  std::vector<Program> compiled_;
  Binding logits_;
};

}  // namespace akunu
