// A model_type of Hugging Face's config.json: what the keys of such a file mean, and what transformers takes where it
// leaves them out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/model_config.h"
#include "files/huggingface/expert_config.h"
#include "files/huggingface/latent_config.h"
#include "files/huggingface/layer_shapes.h"
#include "models/common/hf_names.h"

namespace akunu {

class ConfigObject;
struct HfConfig;

// How the stacks of experts in floats lie: [experts, outputs, inputs], [experts, inputs, outputs], or as
// their shape says, as transformers takes both of Qwen3-VL.
enum class StackOrder : uint8_t { rows_first, columns_first, either };

// Of a model_type that looks at `sliding_window`.
struct HfWindows {
  uint32_t length = 0;        // 0: none unless the file says so
  uint32_t period = 0;        // 6: layers 6, 12, ... see everything, the others a window
  uint32_t first = 0;         // layers before it see everything (`max_window_layers`); 0: none does
  bool asked = false;         // only `use_sliding_window` switches windows on
  bool needed = false;        // its model is another one without a window, or with a long one
  bool rotate_alone = false;  // where there are windows, other layers have no positions
};

// Of numbers, 0: the file must have the key (n_kv_heads and head_dim then follow from others).
struct HfModel {
  std::string_view model_type;
  const HfNames* names = &hf::kUsualNames;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;
  std::optional<HfWindows> windows = {};
  uint32_t original_context = 0;  // before it was stretched
  uint32_t scale_dim = 0;  // attention is scaled by 1 / sqrt of it; 0: by the head's dimension
  float rope_theta = 10000;
  float rope_theta_windowed = 0;
  float rotating_part = 1;  // of a head
  float norm_epsilon = 1e-6f;
  std::string_view epsilon_key = "rms_norm_eps";
  std::string_view ffn_key = "intermediate_size";
  std::string_view context_key = "max_position_embeddings";
  std::string_view activation = "silu";
  bool means_gelu_tanh = false;       // "gelu" of old files is the approximation, as its code did
  bool has_unrotated_layers = false;  // `no_rope_layers`
  bool names_positions = false;       // `position_embedding_type`: "rope", or there are none
  bool has_alpha = false;             // of NTK
  bool has_long_rope = false;         // also where old files say "su" or "yarn"
  bool reads_interleave = true;       // whether transformers looks at `rope_interleave`
  float logit_scale = 0;              // 0: there is none
  std::optional<HfLatents> latents = {};
  std::optional<HfExperts> experts = {};
  bool names_factors = false;  // MiniCPM3's `scale_emb`, `scale_depth` and `dim_model_base`
  StackOrder stacks = StackOrder::rows_first;
  std::optional<HfLayerShapes> shapes = {};  // Gemma 4's keys of heads and of layers
  bool has_attention = true;  // else no layer has heads, and none a feed-forward network
  // Keys of what layers have instead of attention or beside it. Those of attention and experts were read.
  void (*read_layers)(ConfigObject& config, HfConfig& result) = nullptr;
  // Of `layer_types`, words for layers that have no window, beside "full_attention".
  std::span<const std::string_view> mixer_words = {};
  // Keys that are read, of those that other models may have with values that change nothing.
  std::span<const std::string_view> own_keys = {};
  std::string_view without_effect = {};  // keys that begin so have none
  std::string_view layers_key = "num_hidden_layers";
  uint32_t n_layers = 0;
  // Where the key is not there: the length of a list. Nothing: there is none.
  std::optional<uint32_t> (*count_layers)(ConfigObject& config) = nullptr;
  // Reads the whole file, where its keys are not those of decoders.
  HfConfig (*read)(ConfigObject& config, uint32_t n_layers, std::string_view model_type) = nullptr;
};

// Granite's factors.
inline constexpr std::string_view kMultipliers[] = {"embedding_multiplier", "residual_multiplier",
                                                    "attention_multiplier", "logits_scaling"};

// An encoder of images in front of a text model: how config.json gives its numbers, and the names of all tensors, those of
// the text model too.
struct HfImages {
  ImageConfig (*read)(ConfigObject& whole, ConfigObject& vision) = nullptr;
  const HfNames* names = nullptr;
};

// A model that reads images: the text model's keys are in the object `text_config`, whose model_type is
// this one where it does not say. Positions in three dimensions (`mrope_section`) are plain ones for text.
struct ImageModel {
  std::string_view model_type, of_text;
  bool may_be_flat = false;          // the first files had all keys side by side
  const HfImages* images = nullptr;  // null: akunu reads its text only
};

}  // namespace akunu
