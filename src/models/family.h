// A family of models: all that akunu knows of it stands in its file, src/models/NAME.cpp, as one constant. From top to
// bottom: what it computes (`describe`), its directories of Hugging Face, its names and keys in GGUF, how it is written.
//
// A new family is a new file, and nothing else: CMake makes the registry of the folder (registry.h), and whoever lists
// families asks that. The name of the file is the architecture's, with '_' for '-'.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "core/arch.h"
#include "core/model_config.h"
#include "models/common/gguf_names.h"
#include "models/common/pre_tokenizers.h"
#include "models/hf_model.h"

namespace akunu {

// What some families compute with, and others do not. A number of a file is read where its family has the trait, and
// refused elsewhere.
struct FamilyTraits {
  bool windows = false;          // layers that see the last positions only
  bool soft_caps = false;        // of attention's scores and of the logits
  bool attention_scale = false;  // of its own, instead of 1 / sqrt(head_dim)
  bool encoder = false;          // rows see those behind them too
  bool layer_norm = false;       // norms subtract the mean
  bool rotates = true;           // rotary positions
  bool has_audio_encoder = false;
  bool full_layer_first = false;  // of the layers that a window's period counts, the first sees all
  bool multipliers = false;       // of embeddings and of what is added to the residual
  bool logit_scale = false;       // logits are multiplied, or divided, by a number of the file
  bool may_not_rotate = false;    // a file may say that its model has no rotary positions
  bool query_growth = false;      // queries are multiplied by more as positions grow
  bool experts = false;           // the feed-forward network may be a mixture of experts
  bool interleaves = false;       // neighbours rotate, in Hugging Face's files too
  bool latent = false;            // multi-head latent attention
  // Windowed layers have heads of another length than others, the last layers may read the keys and
  // values of earlier ones, and each may have an embedding of its own.
  bool layer_shapes = false;
  bool convolves = false;  // layers may have a short convolution instead of attention
  bool recurs = false;     // layers may have the gated delta rule instead
  bool tiles_values =
      false;  // in its GGUF files value heads are in the order of DeltaRule::is_tiled
  bool channels_decay = false;  // the delta rule is that of DeltaRule::per_channel
  bool predicts = false;        // its files may have a prediction head that akunu computes
  bool streams = false;         // the residual is several streams, gates may be cut
  bool scans = false;           // layers may have the selective scan of Mamba-2 instead
  bool scans_beside = false;    // all have it, beside attention
  bool alternates = false;      // a layer is a mixer or a feed-forward network, never both
};

// What a file of GGUF must have for llama.cpp, where a directory is converted.
struct GgufWriting {
  bool rope_factors = false;     // factors of frequencies are read, as tensors
  bool attention_scale = false;  // a scale of attention is read
  bool always_with_experts =
      false;                    // numbers of experts are asked for, where all layers are dense too
  bool factors_unsaid = false;  // no key says factors on embeddings, residual and logits
  bool factors_in_weights = false;   // every factor is in the weights
  bool both_epsilons = false;        // newer versions ask for the epsilon of layer norms, too
  bool expert_step = false;          // `interleave_moe_layer_step` is asked for
  bool without_truncation = false;   // YaRN without truncation is written, and differs a little
  bool b_and_a_by_key_head = false;  // the delta rule's b and a are one tensor
  bool latents_apart = false;  // what makes keys of latents, and what makes values, are two tensors
  std::span<const std::string_view> joined = {};  // tensors that several are written as
};

// How its models mark their thoughts. A chat template that has all of `signs` does so; others have <think>.
struct ThinkingMarks {
  static constexpr size_t kMost = 4;
  std::array<std::string_view, kMost> signs = {};
  std::string_view
      opening;  // before the thoughts, at the beginning of a reply or at the end of the prompt
  std::string_view closing;  // behind them
  // What may stand between the thoughts, or where there are none the prompt, and the answer, and what may end that: a
  // part of neither. The longest first.
  std::array<std::string_view, kMost> answer_openings = {};
  std::array<std::string_view, kMost> answer_closings = {};
  std::array<std::string_view, kMost> further_openings = {};  // of thoughts after the first ones
};

// What people call its models, by what they are; empty: none is.
struct FamilyTitles {
  std::string_view dense = {};
  std::string_view with_experts = {};
  std::string_view recurrent = {};
  std::string_view encoder = {};
  std::string_view speech = {};
  std::string_view images = {};
};

struct Family {
  std::string_view architecture;  // its name in GGUF, "general.architecture"
  FamilyTitles titles;
  ArchDescriptor (*describe)(const ModelConfig& config) = nullptr;
  FamilyTraits traits = {};
  const NameRules* gguf_names = &gguf::kUsualNames;
  const NameRules* whisper_cpp_names = nullptr;  // in whisper.cpp's files
  GgufWriting written = {};
  std::span<const HfModel> directories = {};
  std::span<const ImageModel> with_images = {};
  std::span<const PreTokenizerName> pre_tokenizers = {};
  std::span<const ThinkingMarks> thinking = {};
};

}  // namespace akunu
