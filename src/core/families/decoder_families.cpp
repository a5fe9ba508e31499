// Decoders with one feed-forward network in each layer. families.h says what a family is.
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/families/families.h"

namespace akunu::families {

// Pre-norm transformer with grouped-query attention, rotary positions and a gated feed-forward
// network (Touvron et al., 2023).
ArchDescriptor llama(const ModelConfig& config) {
  ArchDescriptor arch;
  arch.dim = config.dim;
  arch.vocab_size = config.vocab_size;
  arch.context_length = config.context_length;
  arch.norm_epsilon = config.norm_epsilon;
  arch.row_style = RopeStyle::interleaved;
  for (const LayerConfig& from : config.layers) {
    LayerDescriptor& layer = arch.layers.emplace_back();
    layer.n_heads = from.n_heads;
    layer.n_kv_heads = from.n_kv_heads;
    layer.head_dim = from.head_dim;
    layer.attention_scale = 1.0f / std::sqrt(static_cast<float>(from.head_dim));
    // GGUF stores the Q and K rows of llama permuted, so that neighbours rotate together.
    layer.rope_style = RopeStyle::interleaved;
    layer.rope_dim = from.rope_dim != 0 ? from.rope_dim : config.rope_dim;
    layer.rope_theta = config.rope_theta;
    layer.rope_linear_factor = config.rope_linear_factor;
    layer.rope_dynamic_factor = config.rope_dynamic_factor;
    layer.window = from.windowed.value_or(true) ? config.window : 0;
    layer.activation = Activation::silu;
    layer.ffn_dim = from.ffn_dim;
  }
  return arch;
}

// Biases of Q, K and V are seen from the tensors.
ArchDescriptor qwen2(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  arch.row_style = RopeStyle::halves;
  for (LayerDescriptor& layer : arch.layers) layer.rope_style = RopeStyle::halves;
  return arch;
}

ArchDescriptor qwen3(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  for (LayerDescriptor& layer : arch.layers) layer.head_norms = true;
  return arch;
}

// Phi-3 (2024): Q, K and V in one matrix, gate and up in another; the names say how they are cut.
ArchDescriptor phi3(const ModelConfig& config) { return qwen2(config); }

// Gemma (2024): larger embeddings, GELU in the gate. Its norms multiply by 1 + w; whoever makes the
// file adds the 1.
ArchDescriptor gemma(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  arch.embedding_scale = std::sqrt(static_cast<float>(config.dim));
  for (LayerDescriptor& layer : arch.layers) layer.activation = Activation::gelu_tanh;
  return arch;
}

// Every `period`th layer has full attention, the others a sliding window, unless the file says which.
void give_windows(ArchDescriptor& arch, const ModelConfig& config, size_t period,
                  uint32_t usual_window) {
  for (size_t i = 0; i < arch.layers.size(); ++i)
    arch.layers[i].window = !config.layers[i].windowed.value_or((i + 1) % period != 0) ? 0
                            : config.window != 0 ? config.window
                                                 : usual_window;
}

// The scale is 1 / sqrt(head_dim), in the largest model of a generation 1 / sqrt(dim / n_heads).
void give_attention_scale(ArchDescriptor& arch, const ModelConfig& config, size_t n_largest) {
  for (LayerDescriptor& layer : arch.layers) {
    if (arch.layers.size() == n_largest)
      layer.attention_scale = 1.0f / std::sqrt(static_cast<float>(arch.dim / layer.n_heads));
    if (config.attention_scale != 0) layer.attention_scale = config.attention_scale;
  }
}

namespace {

// Where the file has none, those of the family; 0: none.
void give_soft_caps(ArchDescriptor& arch, const ModelConfig& config, float of_attention,
                    float of_logits) {
  arch.logit_soft_cap = config.logit_soft_cap.value_or(of_logits);
  for (LayerDescriptor& layer : arch.layers)
    layer.attention_soft_cap = config.attention_soft_cap.value_or(of_attention);
}

}  // namespace

// Gemma 2 (2024): norms after attention and after the feed-forward network, soft caps on the logits and on the
// scores of attention, a sliding window in every second layer.
ArchDescriptor gemma2(const ModelConfig& config) {
  ArchDescriptor arch = gemma(config);
  give_windows(arch, config, 2, 4096);
  give_attention_scale(arch, config, 46);
  give_soft_caps(arch, config, 50.0f, 30.0f);
  for (LayerDescriptor& layer : arch.layers) layer.post_norms = true;
  return arch;
}

// Gemma 3 (2025): norms per head of Q and K instead of the caps; windows in five of six layers,
// whose positions turn faster and are never scaled. A file without a window has none anywhere.
ArchDescriptor gemma3(const ModelConfig& config) {
  ArchDescriptor arch = gemma(config);
  give_windows(arch, config, 6, 0);
  give_attention_scale(arch, config, 62);
  give_soft_caps(arch, config, 0.0f, 0.0f);
  for (LayerDescriptor& layer : arch.layers) {
    layer.head_norms = layer.post_norms = true;
    if (layer.window == 0) continue;
    layer.rope_theta = config.rope_theta_windowed != 0 ? config.rope_theta_windowed : 10000.0f;
    layer.rope_linear_factor = layer.rope_dynamic_factor = 1;
  }
  if (!config.images) return arch;
  arch.images = image_encoder(*config.images);
  // A row sees all of its image, and no layer's window may end within.
  const uint32_t n_tokens = arch.images->n_tokens();
  for (const LayerDescriptor& layer : arch.layers)
    if (layer.window != 0 && layer.window < n_tokens)
      throw UnsupportedModelError("windows of " + std::to_string(layer.window) +
                                  " positions are shorter than images, which have " +
                                  std::to_string(n_tokens));
  return arch;
}

namespace {

// Only every `period`th layer has no rotary positions, unless the file says which.
void give_unrotated(ArchDescriptor& arch, const ModelConfig& config, size_t period) {
  for (size_t i = 0; i < arch.layers.size(); ++i)
    if (!config.layers[i].rotates.value_or(period == 0 || (i + 1) % period != 0))
      arch.layers[i].rope_style = RopeStyle::none;
}

}  // namespace

// Granite (IBM, 2024): llama with factors on embeddings, scores, what is added to the residual, and
// logits, which are divided by theirs. Of version 4 some models have no positions at all.
ArchDescriptor granite(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_unrotated(arch, config, 0);
  give_attention_scale(arch, config, 0);
  if (config.embedding_scale != 0) arch.embedding_scale = config.embedding_scale;
  if (config.residual_scale != 0) arch.residual_scale = config.residual_scale;
  if (config.logit_scale != 0) arch.logit_scale = 1 / config.logit_scale;
  return arch;
}

// Ministral 3 (2025): llama whose queries grow with the logarithm of their positions.
ArchDescriptor mistral3(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  if (config.query_growth == 0) return arch;
  require_positive(config.query_growth, "growth of queries");
  require(config.query_growth_length, "length that queries grow by", config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.query_growth = config.query_growth;
    layer.query_growth_length = config.query_growth_length;
    if (layer.rope_dim != layer.head_dim)
      throw UnsupportedModelError("queries that grow need all of a head to rotate");
  }
  return arch;
}

// SmolLM3 (2025): llama whose every fourth layer has no rotary positions.
ArchDescriptor smollm3(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_unrotated(arch, config, 4);
  return arch;
}

namespace {

// Norms behind attention and feed-forward only, what they read being the residual as it is.
void norm_behind_only(ArchDescriptor& arch) {
  arch.norm_place = NormPlace::none;
  for (LayerDescriptor& layer : arch.layers) layer.head_norms = layer.post_norms = true;
}

}  // namespace

// OLMo 2 (2024): norms of all heads of Q and of K. OLMo 3 is the same with windows in three of four
// layers, whose positions are never scaled.
ArchDescriptor olmo2(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  norm_behind_only(arch);
  give_windows(arch, config, 4, 0);
  for (LayerDescriptor& layer : arch.layers) {
    layer.norms_all_heads = true;
    if (layer.window == 0) continue;
    if (config.rope_theta_windowed != 0) layer.rope_theta = config.rope_theta_windowed;
    layer.rope_linear_factor = layer.rope_dynamic_factor = 1;
    layer.rope_factors = false;
  }
  return arch;
}

// GLM-4 (2025): norms before and behind, neighbours rotate.
ArchDescriptor glm4(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  for (LayerDescriptor& layer : arch.layers) layer.post_norms = true;
  return arch;
}

// ERNIE 4.5 (2025): llama.
ArchDescriptor ernie4_5(const ModelConfig& config) { return llama(config); }

// Seed-OSS (2025): qwen2 by other names.
ArchDescriptor seed_oss(const ModelConfig& config) { return qwen2(config); }

// Hunyuan (2025): norms per head of Q and K behind their rotary positions.
ArchDescriptor hunyuan_dense(const ModelConfig& config) {
  ArchDescriptor arch = qwen3(config);
  for (LayerDescriptor& layer : arch.layers) layer.norms_behind_rope = true;
  return arch;
}

namespace {

// In a model with windows, layers that see everything have no rotary positions.
void rotate_windows_only(ArchDescriptor& arch, const ModelConfig& config) {
  if (config.window == 0) return;
  for (LayerDescriptor& layer : arch.layers)
    if (layer.window == 0) layer.rope_style = RopeStyle::none;
}

}  // namespace

// EXAONE 4 (2025): OLMo 2's frame with norms per head; the larger models have windows in three of
// four layers.
ArchDescriptor exaone4(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  norm_behind_only(arch);
  give_windows(arch, config, 4, 0);
  rotate_windows_only(arch, config);
  return arch;
}

// StarCoder2 (2024): layer norms, a feed-forward network without a gate, biases everywhere.
ArchDescriptor starcoder2(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  arch.norm = NormKind::layer;
  for (LayerDescriptor& layer : arch.layers) {
    layer.feed_forward = FeedForward::plain;
    layer.activation = Activation::gelu_tanh;
  }
  return arch;
}

// Command-R (Cohere, 2024): one layer norm without a bias, which attention and feed-forward both read;
// logits are multiplied by a number.
ArchDescriptor command_r(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  arch.norm = NormKind::layer;
  arch.parallel = true;
  if (config.logit_scale != 0) arch.logit_scale = config.logit_scale;
  return arch;
}

// Command R7B and its successors: windows in three of four layers.
ArchDescriptor cohere2(const ModelConfig& config) {
  ArchDescriptor arch = command_r(config);
  give_windows(arch, config, 4, 0);
  rotate_windows_only(arch, config);
  return arch;
}

namespace {

// The last `n` layers read the keys and values of the last layer before them all that sees as much.
void share_keys(ArchDescriptor& arch, uint32_t n) {
  const size_t n_layers = arch.layers.size();
  if (n >= n_layers)
    throw ModelFormatError(
        std::to_string(n) + " of " + std::to_string(n_layers) +
        " layers read the keys and values of others; one at least needs its own");
  const auto n_own = static_cast<uint32_t>(n_layers - n);
  for (size_t i = n_own; i < n_layers; ++i) {
    LayerDescriptor& layer = arch.layers[i];
    for (uint32_t own = 0; own < n_own; ++own)
      if (arch.layers[own].window == layer.window) layer.kv_from = own;
    if (!layer.kv_from)
      throw ModelFormatError("layer " + std::to_string(i) +
                             " has no keys and values, and no layer before it that sees as much");
  }
}

}  // namespace

// Gemma 4 (2026): Gemma 3 whose scores are not scaled, with norms of values too. Layers that see
// everything have heads of their own length, of which a part rotates: the file's factors say which.
// The small models share keys and values, and have embeddings for each layer; one has experts beside
// the network of each layer.
ArchDescriptor gemma4(const ModelConfig& config) {
  ArchDescriptor arch = gemma3(config);
  give_soft_caps(arch, config, 0.0f, 30.0f);
  arch.per_layer_dim = config.per_layer_dim;
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    LayerDescriptor& layer = arch.layers[i];
    layer.attention_scale = 1;
    layer.value_norms = true;
    layer.values_are_keys = config.layers[i].values_are_keys;
    layer.rope_factors = layer.window == 0;
  }
  share_keys(arch, config.n_shared_kv_layers);
  give_experts(arch, config, Scoring::softmax, true);
  for (LayerDescriptor& layer : arch.layers) {
    if (!layer.experts) continue;
    layer.experts->beside_dense = true;
    layer.experts->router_scale = 1 / std::sqrt(static_cast<float>(config.dim));
  }
  return arch;
}

// Gemma 3n (2025): Gemma 4's layers of one length of heads, in a residual of several streams, with a
// branch beside attention and gates of which only the largest numbers count.
ArchDescriptor gemma3n(const ModelConfig& config) {
  ArchDescriptor arch = gemma3(config);
  give_soft_caps(arch, config, 0.0f, 30.0f);
  arch.per_layer_dim = config.per_layer_dim;
  arch.streams = ResidualStreams{
      .n = config.n_streams, .active = config.active_stream, .is_scaled = config.scales_streams};
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    LayerDescriptor& layer = arch.layers[i];
    layer.attention_scale = 1;
    layer.value_norms = true;
    layer.has_branch = true;
    layer.gate_cut = config.layers[i].gate_cut;
  }
  share_keys(arch, config.n_shared_kv_layers);
  return arch;
}

}  // namespace akunu::families
