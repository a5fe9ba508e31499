// The families of a `config.json`: which architecture computes a model_type, and what its keys mean.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weight/hf_config.h"
#include "weight/hf_latent_config.h"
#include "weight/hf_layer_shapes.h"

namespace akunu {

// A model_type, and the architecture of ours that computes it. The numbers are the defaults of
// transformers, for keys that the file leaves out; 0: the file must have the key (n_kv_heads and head_dim
// then follow from others).
struct HfFamily {
  std::string_view model_type;
  std::string_view architecture;
  HfNaming naming = HfNaming::usual;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;
  bool has_windows = false;
  uint32_t window = 0;         // 0: none unless the file says so
  uint32_t window_period = 0;  // 6: layers 6, 12, ... see everything, the others a window
  uint32_t window_first = 0;  // layers before it see everything (`max_window_layers`); 0: none does
  bool window_asked = false;  // only `use_sliding_window` switches windows on
  bool window_needed = false;     // its model is another one without a window, or with a long one
  uint32_t original_context = 0;  // before it was stretched
  uint32_t scale_dim = 0;  // attention is scaled by 1 / sqrt of it; 0: by the head's dimension
  float rope_theta = 10000;
  float norm_epsilon = 1e-6f;
  float rope_theta_windowed = 0;
  float rotating_part = 1;  // of a head
  std::string_view epsilon_key = "rms_norm_eps";
  std::string_view ffn_key = "intermediate_size";
  std::string_view context_key = "max_position_embeddings";
  std::string_view activation = "silu";
  bool has_multipliers = false;       // Granite's four
  bool has_unrotated_layers = false;  // `no_rope_layers`
  bool names_positions = false;       // `position_embedding_type`: "rope", or there are none
  bool has_alpha = false;             // of NTK
  bool has_query_growth = false;      // `llama_4_scaling_beta`
  bool rotates_windows = false;       // where there are windows, other layers have no positions
  float logit_scale = 0;              // 0: there is none
  std::optional<HfLatents> latents = {};
  StackOrder stacks = StackOrder::rows_first;
  std::optional<HfLayerShapes> shapes = {};  // Gemma 4's keys of heads and of layers
  bool convolves = false;                    // LFM2's keys
  bool has_streams = false;                  // Gemma 3n's
  bool scans = false;                        // Granite 4's keys of Mamba-2
  bool scans_beside = false;                 // Falcon-H1's, and of its factors
  bool alternates = false;                   // Nemotron-H's keys of what each layer is
  bool only_scans = false;                   // Mamba-2's own keys
  bool recurs = false;         // Qwen3.5's of the delta rule; with latents Kimi-Linear's
  bool names_factors = false;  // MiniCPM3's `scale_emb`, `scale_depth` and `dim_model_base`
  // Keys that begin so have no effect in this family.
  std::string_view without_effect = {};

  // Whether its config.json is read by hf_encoder_config.h.
  constexpr bool has_own_keys() const {
    return naming == HfNaming::bert || naming == HfNaming::nomic_bert ||
           naming == HfNaming::modern_bert || naming == HfNaming::whisper;
  }
};

// Models that read images: the text model's keys are in the object `text_config`, whose model_type is
// this one where it does not say. Positions in three dimensions (`mrope_section`) are plain ones for text.
struct ImageFamily {
  std::string_view model_type, of_text;
  bool may_be_flat = false;  // the first files had all keys side by side
};

std::span<const HfFamily> hf_families();
std::span<const ImageFamily> image_families();

// Null where there is none of that model_type.
const HfFamily* find_hf_family(std::string_view model_type);

}  // namespace akunu
