// ModelConfig: what a model file says of its model, whatever its format. A family (models/family.h) makes an ArchDescriptor
// of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/activation.h"
#include "core/blocks/delta_rule.h"
#include "core/blocks/experts.h"
#include "core/blocks/latent_attention.h"
#include "core/blocks/residual_streams.h"
#include "core/blocks/rope.h"
#include "core/blocks/scan.h"
#include "core/blocks/short_convolution.h"
#include "core/encoders.h"
#include "core/pooling.h"

namespace akunu {

// What a model file says of one layer; 0 where it says nothing.
struct LayerConfig {
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn_dim = 0;
  uint32_t rope_dim = 0;               // leading dimensions of a head that rotate; 0: the model's
  bool values_are_keys = false;        // it has no weights of values
  std::optional<bool> windowed;        // whether it sees `ModelConfig::window` positions only
  std::optional<bool> rotates;         // whether its Q and K have rotary positions
  bool convolves = false;              // it has a short convolution instead of attention
  bool recurs = false;                 // it is recurrent, instead of attention
  std::optional<float> gate_cut = {};  // as in FeedForward
  bool scans = false;                  // it has a scan (Mamba-2), instead of attention, or both
};

// Layers that a file may say it has. More is refused at once: memory for absurd counts would run out before the first
// missing tensor is noticed.
inline constexpr uint32_t kMostLayers = 10000;

// What a model file says of a mixture of experts; 0 where it says nothing.
struct ExpertConfig {
  uint32_t n = 0;  // 0: the model has none
  uint32_t n_chosen = 0;
  uint32_t dim = 0;              // feed-forward length of each
  uint32_t shared_dim = 0;       // of the expert that all rows go through, or all those together
  uint32_t n_leading_dense = 0;  // layers before the first with experts
  std::optional<Scoring> scoring;
  std::optional<bool> normalised;
  float scale = 0;
  uint32_t n_groups = 0;
  uint32_t n_groups_chosen = 0;
  float limit = 0;  // as in Experts
  float alpha = 0;
  uint32_t n_layers_ahead = 0;  // after all others, which guess tokens further ahead
};

// What the parts of a layer are multiplied by.
struct LayerFactors {
  float attention = 1;     // of the result of attention, before it is added to the residual
  float feed_forward = 1;  // likewise
  float gate = 1;          // of a feed-forward network, before its activation

  bool operator==(const LayerFactors&) const = default;
};

// What a model file says, whatever its format; 0 or empty where it says nothing.
struct ModelConfig {
  std::string architecture;  // "llama", "qwen3", ...
  std::string name;
  uint32_t dim = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;      // positions that the model was trained on
  std::vector<LayerConfig> layers;  // all of them, a prediction head's last
  uint32_t n_ahead = 0;             // of these, of a prediction head: 0 or 1
  ExpertConfig experts;
  uint32_t n_shared_kv_layers = 0;  // the last ones, which read the keys and values of others
  uint32_t per_layer_dim = 0;  // numbers of a token for each layer (per-layer embeddings); 0: none
  std::optional<ResidualStreams> streams;  // nothing: the residual is one
  uint32_t window = 0;                     // positions that a row of a windowed layer sees
  Rope rope;                               // without its style
  float rope_theta_windowed = 0;           // of windowed layers, where it is another
  uint32_t rope_original_context = 0;   // where long-RoPE's long factors begin; 0: context_length
  float rope_attention_factor = 1;      // Q and K are multiplied by it where they rotate (YaRN)
  std::optional<RopeStyle> rope_style;  // how the rows of Q and K lie, where not as GGUF has them
  float norm_epsilon = 0;
  float attention_scale = 0;
  // Blocks of layers, as far as files say them; what is 0 follows from other numbers.
  LatentAttention latent;
  ShortConvolution convolution;             // of layers that convolve
  DeltaRule delta_rule;                     // of layers that recur
  Scan scan;                                // of layers that scan
  std::optional<float> attention_soft_cap;  // 0: none
  std::optional<float> logit_soft_cap;      // 0: none
  // Factors; 0: the file says none. What a family does with logit_scale is its own.
  float embedding_scale = 0;
  float residual_scale = 0;  // of what attention and feed-forward add to the residual
  float logit_scale = 0;
  LayerFactors layer_factors;
  bool embeds = false;             // texts become vectors, also of a family that generates
  std::optional<Pooling> pooling;  // of models that embed texts
  std::optional<Activation> head_activation;  // of a classifier's dense layer
  // The dense layers of sentence-transformers have these.
  std::array<Activation, 2> dense_activations{Activation::none, Activation::none};
  uint32_t position_offset = 0;  // the row of the position embedding that position 0 has
  // A model of speech has these.
  std::vector<LayerConfig> audio_layers;
  uint32_t audio_positions = 0;  // that the encoder makes of a window
  uint32_t n_mels = 0;           // mel bands of a frame
  std::optional<ImageConfig> images;
  std::vector<std::string> notes;  // what of it was not taken as it is, a line each
};

// How many of the layers every row goes through: those of a prediction head come last.
inline uint32_t n_own_layers(const ModelConfig& config) {
  return static_cast<uint32_t>(config.layers.size()) - config.n_ahead;
}

}  // namespace akunu
