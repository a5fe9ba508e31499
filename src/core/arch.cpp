// The families of models, each a function that fills an ArchDescriptor. arch.h says what that is.
//
// 1. What it does. `describe` finds the family by the name that the file gives (kFamilies), checks
//    the file's numbers, calls the family's function, and applies what holds for all families:
//    rotation styles, encoders, factors on rotated numbers. A family is written as what it has
//    beside another one: qwen3 is qwen2 with norms per head.
// 2. What bounds it. Nothing: it runs once, at load. What it must not do is guess: a number that
//    is missing or impossible is a ModelFormatError, what akunu does not compute an
//    UnsupportedModelError.
// 3. Where to change it. A new family: its function here, a row of kFamilies, names of its tensors
//    (weight/names.cpp), its keys (weight/hf_config.cpp). What no family has had so far: a field
//    of LayerDescriptor or ArchDescriptor, and what it emits in forward.cpp. docs/decisions/0036.
#include "core/arch.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/kernel_params.h"

namespace akunu {
namespace {

void require(uint32_t value, std::string_view what, const ModelConfig& config) {
  if (value == 0)
    throw ModelFormatError("the " + config.architecture + " model does not say its " +
                           std::string(what) + ", or says 0");
}

void require_positive(float value, std::string_view what) {
  if (!(value > 0) || !std::isfinite(value))
    throw ModelFormatError("the " + std::string(what) + " is " + std::to_string(value) +
                           "; it must be a positive number");
}

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

// LFM2 (Liquid AI, 2025): qwen3, most of whose layers have a short convolution instead of attention.
ArchDescriptor lfm2(const ModelConfig& config) {
  constexpr uint32_t kMostWidth = 64;
  ArchDescriptor arch = qwen3(config);
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].convolves) continue;
    LayerDescriptor& layer = arch.layers[i];
    layer.mixer = Mixer::convolution;
    layer.rope_style = RopeStyle::none;
    layer.head_norms = false;
    layer.convolution = ShortConvolution{.dim = config.dim, .width = config.convolution_width};
    if (config.convolution_width < 2 || config.convolution_width > kMostWidth)
      throw ModelFormatError("the width of the short convolution is " +
                             std::to_string(config.convolution_width) + "; it must be 2 to " +
                             std::to_string(kMostWidth));
  }
  return arch;
}

// Layers with the gated delta rule instead of attention, whose own attention has gates.
void give_delta_rules(ArchDescriptor& arch, const ModelConfig& config) {
  constexpr uint32_t kMostWidth = 64;
  const DeltaRule& rule = config.delta_rule;
  const auto text = [](uint64_t number) { return std::to_string(number); };
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    LayerDescriptor& layer = arch.layers[i];
    layer.output_gate = !config.layers[i].recurs;
    if (!config.layers[i].recurs) continue;
    layer.mixer = Mixer::delta_rule;
    layer.rope_style = RopeStyle::none;
    layer.head_norms = false;
    layer.delta_rule = rule;
    for (const uint32_t number :
         {rule.n_key_heads, rule.n_value_heads, rule.key_dim, rule.value_dim})
      require(number, "number or length of heads of the delta rule", config);
    if (rule.n_value_heads % rule.n_key_heads != 0)
      throw ModelFormatError(text(rule.n_value_heads) + " heads of values cannot share " +
                             text(rule.n_key_heads) + " heads of keys evenly");
    if (rule.key_dim > kMaxStateDim)
      throw UnsupportedModelError("keys of the delta rule have " + text(rule.key_dim) +
                                  " numbers; akunu has 1 to " + text(kMaxStateDim));
    if (rule.width < 2 || rule.width > kMostWidth)
      throw ModelFormatError("the convolution before the delta rule is over " + text(rule.width) +
                             " rows; it must be 2 to " + text(kMostWidth));
    constexpr uint64_t kMost = 1u << 28;  // numbers of a row have 32 bits in the kernels
    if (uint64_t{rule.n_key_heads} * rule.key_dim >= kMost ||
        uint64_t{rule.n_value_heads} * rule.value_dim >= kMost)
      throw ModelFormatError(text(rule.n_value_heads) + " heads of the delta rule, of " +
                             text(rule.value_dim) + " numbers, are beyond what any model has");
    layer.state = RecurrentState{.n_heads = rule.n_value_heads,
                                 .head_size = rule.key_dim * rule.value_dim,
                                 .convolved = rule.convolved(),
                                 .width = rule.width};
  }
}

// Qwen3.5 (2026): qwen3 with gates on what attention makes, three of four layers having the gated delta
// rule instead. Its norms multiply by 1 + w; whoever makes the file adds the 1.
ArchDescriptor qwen35(const ModelConfig& config) {
  ArchDescriptor arch = qwen3(config);
  give_delta_rules(arch, config);
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

// Every `period`th layer sees everything and the others a window, unless the file says which.
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

// Where the file has none, those of the family; 0: none.
void give_soft_caps(ArchDescriptor& arch, const ModelConfig& config, float of_attention,
                    float of_logits) {
  arch.logit_soft_cap = config.logit_soft_cap.value_or(of_logits);
  for (LayerDescriptor& layer : arch.layers)
    layer.attention_soft_cap = config.attention_soft_cap.value_or(of_attention);
}

// Gemma 2 (2024): norms behind attention and the feed-forward network, caps, a window in every
// second layer.
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
  return arch;
}

// What makes an encoder of a decoder: rows see those behind them, too.
void make_encoder(ArchDescriptor& arch, Pooling usual, const ModelConfig& config) {
  arch.embeds = true;
  arch.causal = false;
  arch.pooling = config.pooling.value_or(usual);
}

// Gemma 3's layers as an encoder: a window is half before a row and half behind it.
ArchDescriptor gemma_embedding(const ModelConfig& config) {
  ArchDescriptor arch = gemma3(config);
  make_encoder(arch, Pooling::mean, config);
  for (LayerDescriptor& layer : arch.layers) layer.window /= 2;
  return arch;
}

// Llama's layers as an encoder (Boizard et al., 2025).
ArchDescriptor eurobert(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  make_encoder(arch, Pooling::mean, config);
  return arch;
}

// ModernBERT (Warner et al., 2024): norms before the parts of a layer, rotary positions, GELU in the
// gate, and a window in two of three layers, whose positions turn faster.
ArchDescriptor modern_bert(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  make_encoder(arch, Pooling::first, config);
  arch.norm = NormKind::layer;
  arch.head_activation = Activation::gelu;
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    LayerDescriptor& layer = arch.layers[i];
    layer.activation = Activation::gelu;
    if (!config.layers[i].windowed.value_or(i % 3 != 0)) continue;
    layer.window = (config.window != 0 ? config.window : 128) / 2;
    if (config.rope_theta_windowed != 0) layer.rope_theta = config.rope_theta_windowed;
  }
  return arch;
}

// BERT's frame with rotary positions and a gated feed-forward network (Nussbaum et al., 2024).
ArchDescriptor nomic_bert(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  make_encoder(arch, Pooling::mean, config);
  arch.norm = NormKind::layer;
  arch.norm_place = NormPlace::after_sum;
  return arch;
}

// BERT (Devlin et al., 2018): learned positions, token types, norms behind each sum.
ArchDescriptor bert(const ModelConfig& config) {
  ArchDescriptor arch = nomic_bert(config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.rope_style = RopeStyle::none;
    layer.feed_forward = FeedForward::plain;
    layer.activation = Activation::gelu;
  }
  return arch;
}

// BERT's frame with ALiBi instead of positions, and GELU in the gate (Günther et al., 2023).
ArchDescriptor jina_bert_v2(const ModelConfig& config) {
  ArchDescriptor arch = nomic_bert(config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.rope_style = RopeStyle::none;
    layer.activation = Activation::gelu;
    layer.alibi_bias = 8;
  }
  return arch;
}

// Only every `period`th layer has no rotary positions, unless the file says which.
void give_unrotated(ArchDescriptor& arch, const ModelConfig& config, size_t period) {
  for (size_t i = 0; i < arch.layers.size(); ++i)
    if (!config.layers[i].rotates.value_or(period == 0 || (i + 1) % period != 0))
      arch.layers[i].rope_style = RopeStyle::none;
}

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

// Layers that scan instead of attending.
void give_scans(ArchDescriptor& arch, const ModelConfig& config) {
  constexpr uint32_t kMostWidth = 64;
  const ScanConfig& from = config.scan;
  const auto text = [](uint64_t number) { return std::to_string(number); };
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].scans) continue;
    LayerDescriptor& layer = arch.layers[i];
    layer.mixer = Mixer::scan;
    layer.rope_style = RopeStyle::none;
    layer.head_norms = false;
    layer.scan = Scan{.n_heads = from.n_heads,
                      .head_dim = from.head_dim,
                      .state_dim = from.state_dim,
                      .n_groups = from.n_groups,
                      .width = from.width,
                      .time_min = from.time_min,
                      .time_max = from.time_max};
    if (from.n_heads == 0 || from.head_dim == 0 || from.n_groups == 0 ||
        from.n_heads % from.n_groups != 0)
      throw ModelFormatError(text(from.n_heads) + " heads of a scan, of " + text(from.head_dim) +
                             " numbers, do not go into " + text(from.n_groups) + " groups");
    if (from.state_dim == 0 || from.state_dim > kMaxStateDim)
      throw UnsupportedModelError("the state of a scan has " + text(from.state_dim) +
                                  " numbers for each of a head; akunu has 1 to " +
                                  text(kMaxStateDim));
    if (from.width < 2 || from.width > kMostWidth)
      throw ModelFormatError("the convolution before a scan is over " + text(from.width) +
                             " rows; it must be 2 to " + text(kMostWidth));
    constexpr uint64_t kMost = 1u << 28;  // numbers of a row have 32 bits in the kernels
    if (uint64_t{from.n_heads} * from.head_dim >= kMost ||
        uint64_t{from.n_groups} * from.state_dim >= kMost)
      throw ModelFormatError(text(from.n_heads) + " heads of a scan, of " + text(from.head_dim) +
                             " numbers, are beyond what any model has");
    layer.state = RecurrentState{.n_heads = from.n_heads,
                                 .head_size = from.head_dim * from.state_dim,
                                 .convolved = layer.scan->convolved_dim(),
                                 .width = from.width};
    if (!(from.time_min >= 0 && from.time_max >= from.time_min))
      throw ModelFormatError("the limits of a scan's steps of time are " +
                             std::to_string(from.time_min) + " and " +
                             std::to_string(from.time_max));
  }
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

// Norms behind attention and feed-forward only, what they read being the residual as it is.
void norm_behind_only(ArchDescriptor& arch) {
  arch.norm_place = NormPlace::none;
  for (LayerDescriptor& layer : arch.layers) layer.head_norms = layer.post_norms = true;
}

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

// In a model with windows, layers that see everything have no rotary positions.
void rotate_windows_only(ArchDescriptor& arch, const ModelConfig& config) {
  if (config.window == 0) return;
  for (LayerDescriptor& layer : arch.layers)
    if (layer.window == 0) layer.rope_style = RopeStyle::none;
}

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

// Every layer, or those behind the first few, has experts. The arguments: what holds where the file says
// nothing.
void give_experts(ArchDescriptor& arch, const ModelConfig& config, Scoring scoring,
                  bool normalised) {
  const ExpertConfig& from = config.experts;
  if (from.n == 0) return;
  const Scoring scored = from.scoring.value_or(scoring);
  for (size_t i = from.n_leading_dense; i < arch.layers.size(); ++i)
    arch.layers[i].experts =
        Experts{.n = from.n,
                .n_chosen = from.n_chosen,
                .dim = from.dim != 0 ? from.dim : config.layers[i].ffn_dim,
                .shared_dim = from.shared_dim,
                .scoring = scored,
                .normalised = from.normalised.value_or(normalised),
                .scale = from.scale != 0 ? from.scale : 1,
                .n_groups = std::max(from.n_groups, 1u),
                .n_groups_chosen = std::max(from.n_groups_chosen, 1u),
                .group_best = from.n_groups > 1 && scored == Scoring::sigmoid ? 2u : 1u};
}

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

// DeepSeek-V2 (2024), V3 and what has their shape: multi-head latent attention in llama's frame. The
// scale of attention is that of a head before its keys are compressed, times what YaRN adds.
ArchDescriptor deepseek2(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  require(config.latent_rank, "rank of keys and values", config);
  require(config.value_dim, "length of a value", config);
  give_attention_scale(arch, config, 0);
  for (LayerDescriptor& layer : arch.layers) {
    layer.latent =
        Latent{.rank = config.latent_rank,
               .query_rank = config.query_rank,
               .value_dim = config.value_dim,
               .norm_epsilon = config.latent_norm_epsilon != 0 ? config.latent_norm_epsilon
                                                               : config.norm_epsilon};
    layer.rotated_factor = config.rope_attention_factor;
    if (layer.rope_dim >= layer.head_dim)
      throw ModelFormatError("all " + std::to_string(layer.head_dim) +
                             " numbers of a head rotate; latent attention has some that do not");
  }
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

// MiniCPM3 (OpenBMB, 2024): the same with Granite's factors, which its GGUF files do not say; dimension i
// of what rotates turns with i + half.
ArchDescriptor minicpm3(const ModelConfig& config) {
  ArchDescriptor arch = deepseek2(config);
  arch.row_style = RopeStyle::halves;
  for (LayerDescriptor& layer : arch.layers) layer.rope_style = RopeStyle::halves;
  const auto or_usual = [](float said, float usual) { return said != 0 ? said : usual; };
  arch.embedding_scale = or_usual(config.embedding_scale, 12);
  arch.residual_scale =
      or_usual(config.residual_scale, 1.4f / std::sqrt(static_cast<float>(config.layers.size())));
  arch.logit_scale = 1 / or_usual(config.logit_scale, static_cast<float>(config.dim) / 256);
  return arch;
}

// Qwen3-MoE (2025): qwen3 with experts, whose weights are normalised.
ArchDescriptor qwen3_moe(const ModelConfig& config) {
  ArchDescriptor arch = qwen3(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// Qwen3.5 and Qwen3-Next (2025) with experts, and one more for all rows, with a router of its own.
ArchDescriptor qwen35_moe(const ModelConfig& config) {
  ArchDescriptor arch = qwen35(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// Qwen2-MoE (2024): qwen2 with experts, and one more for all rows, with a router of its own.
ArchDescriptor qwen2_moe(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

// llama's files may have experts: Mixtral (2024).
ArchDescriptor llama_or_mixtral(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// OLMoE (2024): norms of all heads of Q and of K, experts whose weights are as they are.
ArchDescriptor olmoe(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  for (LayerDescriptor& layer : arch.layers) layer.head_norms = layer.norms_all_heads = true;
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

// Granite 3's models with experts (2024).
ArchDescriptor granite_moe(const ModelConfig& config) {
  ArchDescriptor arch = granite(config);
  give_experts(arch, config, Scoring::chosen, false);
  return arch;
}

// Granite 4 (2025): most of whose layers scan. Dense, or with experts and one more for all rows.
ArchDescriptor granite_hybrid(const ModelConfig& config) {
  ArchDescriptor arch = granite_moe(config);
  give_scans(arch, config);
  return arch;
}

// Nemotron-H (2025): each layer is one thing alone, a scan, attention without positions, or a feed-forward
// network, and has one norm.
ArchDescriptor nemotron_h(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.rope_style = RopeStyle::none;
    if (layer.ffn_dim == 0) {
      layer.feed_forward = FeedForward::none;
      continue;
    }
    layer.mixer = Mixer::none;
    layer.feed_forward = FeedForward::plain;
    layer.activation = Activation::relu_squared;
  }
  give_scans(arch, config);
  return arch;
}

// GLM-4.5 (2025): scores by a sigmoid, a bias that says who is chosen, an expert for all rows.
ArchDescriptor glm4_moe(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  give_experts(arch, config, Scoring::sigmoid, true);
  return arch;
}

// ERNIE 4.5 (2025): llama with a bias that says who is chosen, and experts for all rows.
ArchDescriptor ernie4_5_moe(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// Hunyuan-A13B (2025): the dense model with experts, and one more for all rows.
ArchDescriptor hunyuan_moe(const ModelConfig& config) {
  ArchDescriptor arch = hunyuan_dense(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// DeepSeek-MoE (2024): llama with experts, and some more for all rows.
ArchDescriptor deepseek(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

// gpt-oss (2025): windows in every second layer, a sink for each head, experts with biases whose
// activation is clamped.
ArchDescriptor gpt_oss(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  give_windows(arch, config, 2, 128);
  give_experts(arch, config, Scoring::chosen, false);
  for (LayerDescriptor& layer : arch.layers) {
    if (!layer.experts) continue;
    layer.experts->limit = config.experts.limit != 0 ? config.experts.limit : 7.0f;
    layer.experts->alpha = config.experts.alpha != 0 ? config.experts.alpha : 1.702f;
    require_positive(layer.experts->limit, "limit of the experts' activation");
    require_positive(layer.experts->alpha, "alpha of the experts' activation");
  }
  return arch;
}

// Whisper (Radford et al., 2022): learned positions, norms with bias, GELU.
ArchDescriptor whisper(const ModelConfig& config) {
  const auto plain = [](ArchDescriptor arch) {
    for (LayerDescriptor& layer : arch.layers) {
      layer.rope_style = RopeStyle::none;
      layer.feed_forward = FeedForward::plain;
      layer.activation = Activation::gelu;
    }
    return arch;
  };
  ArchDescriptor arch = plain(llama(config));
  arch.norm = NormKind::layer;
  ModelConfig encoder = config;
  encoder.layers = config.audio_layers;
  arch.audio = AudioEncoder{.n_mels = config.n_mels,
                            .n_positions = config.audio_positions,
                            .layers = plain(llama(encoder)).layers};
  return arch;
}

struct Family {
  std::string_view architecture;
  ArchDescriptor (*describe)(const ModelConfig&);
  FamilyTraits traits;
};

constexpr FamilyTraits kWindows{.windows = true};
constexpr FamilyTraits kLaterGemma{.windows = true, .soft_caps = true, .attention_scale = true};
constexpr FamilyTraits kCohere{
    .windows = true, .layer_norm = true, .logit_scale = true, .interleaves = true};
constexpr std::array kFamilies{
    Family{"llama", llama_or_mixtral, {.windows = true, .experts = true}},
    Family{"qwen2", qwen2, kWindows},
    Family{"qwen3", qwen3, kWindows},
    Family{"phi3", phi3, kWindows},
    Family{"gemma", gemma, {}},
    Family{"gemma2", gemma2, kLaterGemma},
    Family{"gemma3", gemma3, kLaterGemma},
    Family{"gemma3n",
           gemma3n,
           {.windows = true, .soft_caps = true, .layer_shapes = true, .streams = true}},
    Family{"gemma4",
           gemma4,
           {.windows = true, .soft_caps = true, .experts = true, .layer_shapes = true}},
    Family{"mistral3", mistral3, {.windows = true, .attention_scale = true, .query_growth = true}},
    Family{"granite",
           granite,
           {.attention_scale = true,
            .multipliers = true,
            .logit_scale = true,
            .may_not_rotate = true}},
    Family{"smollm3", smollm3, kWindows},
    Family{"olmo2", olmo2, kWindows},
    Family{"glm4", glm4, {.interleaves = true}},
    Family{"ernie4_5", ernie4_5, {.interleaves = true}},
    Family{"seed_oss", seed_oss, {}},
    Family{"hunyuan-dense", hunyuan_dense, {}},
    Family{"exaone4", exaone4, kWindows},
    Family{"starcoder2", starcoder2, {.windows = true, .layer_norm = true}},
    Family{"command-r", command_r, {.layer_norm = true, .logit_scale = true, .interleaves = true}},
    Family{"cohere2", cohere2, kCohere},
    Family{"deepseek2",
           deepseek2,
           {.attention_scale = true, .experts = true, .interleaves = true, .latent = true}},
    Family{"minicpm3", minicpm3, {.attention_scale = true, .latent = true}},
    Family{"lfm2", lfm2, {.convolves = true}},
    Family{"qwen35", qwen35, {.recurs = true, .tiles_values = true}},
    Family{"qwen2moe", qwen2_moe, {.windows = true, .experts = true}},
    Family{"qwen3moe", qwen3_moe, {.windows = true, .experts = true}},
    Family{"qwen35moe", qwen35_moe, {.experts = true, .recurs = true, .tiles_values = true}},
    Family{"qwen3next", qwen35_moe, {.experts = true, .recurs = true}},
    Family{"olmoe", olmoe, {.experts = true}},
    Family{"granitemoe",
           granite_moe,
           {.attention_scale = true,
            .multipliers = true,
            .logit_scale = true,
            .may_not_rotate = true,
            .experts = true}},
    Family{"granitehybrid",
           granite_hybrid,
           {.attention_scale = true,
            .multipliers = true,
            .logit_scale = true,
            .may_not_rotate = true,
            .experts = true,
            .scans = true}},
    Family{"nemotron_h", nemotron_h, {.rotates = false, .scans = true, .alternates = true}},
    Family{"glm4moe", glm4_moe, {.experts = true}},
    Family{"hunyuan-moe", hunyuan_moe, {.experts = true}},
    Family{"deepseek", deepseek, {.experts = true}},
    Family{"gpt-oss", gpt_oss, {.windows = true, .experts = true}},
    Family{"ernie4_5-moe", ernie4_5_moe, {.experts = true, .interleaves = true}},
    Family{"bert", bert, {.encoder = true, .layer_norm = true, .rotates = false}},
    Family{"nomic-bert", nomic_bert, {.encoder = true, .layer_norm = true}},
    Family{"jina-bert-v2", jina_bert_v2, {.encoder = true, .layer_norm = true, .rotates = false}},
    Family{"modern-bert",
           modern_bert,
           {.windows = true, .encoder = true, .layer_norm = true, .full_layer_first = true}},
    Family{"eurobert", eurobert, {.encoder = true}},
    Family{"gemma-embedding",
           gemma_embedding,
           {.windows = true, .attention_scale = true, .encoder = true}},
    Family{"whisper", whisper, {.layer_norm = true, .rotates = false, .has_audio_encoder = true}},
};

const Family* family_of(std::string_view architecture) {
  for (const Family& family : kFamilies)
    if (family.architecture == architecture) return &family;
  return nullptr;
}

void check_layer(const LayerConfig& layer, const ModelConfig& config, const FamilyTraits& family,
                 bool rotates) {
  if (family.alternates && (layer.scans || layer.ffn_dim != 0)) return;
  const bool is_recurrent = layer.scans || layer.recurs;
  if (layer.convolves || (is_recurrent && config.experts.dim == 0))
    return require(layer.ffn_dim, "feed-forward length", config);
  if (is_recurrent) return;
  require(layer.n_heads, "number of heads", config);
  require(layer.n_kv_heads, "number of key/value heads", config);
  require(layer.head_dim, "head dimension", config);
  if (config.experts.dim == 0 && !family.alternates)
    require(layer.ffn_dim, "feed-forward length", config);
  if (layer.n_heads % layer.n_kv_heads != 0)
    throw ModelFormatError(std::to_string(layer.n_heads) + " heads cannot share " +
                           std::to_string(layer.n_kv_heads) + " key/value heads evenly");
  constexpr uint64_t kMostNumbers = 1u << 31;  // their products have 32 bits in the kernels
  if (uint64_t{layer.n_heads} * layer.head_dim >= kMostNumbers)
    throw ModelFormatError(std::to_string(layer.n_heads) + " heads of " +
                           std::to_string(layer.head_dim) +
                           " numbers are beyond what any model has");
  const uint32_t rope_dim = layer.rope_dim != 0 ? layer.rope_dim : config.rope_dim;
  if (rotates && (rope_dim == 0 || rope_dim % 2 != 0 || rope_dim > layer.head_dim))
    throw ModelFormatError("the rotary dimension is " + std::to_string(rope_dim) +
                           "; it must be even and at most the head dimension, " +
                           std::to_string(layer.head_dim));
}

void check_experts(const Experts& experts, uint32_t dim) {
  const auto text = [](uint64_t number) { return std::to_string(number); };
  if (experts.n_chosen == 0 || experts.n_chosen > experts.n)
    throw ModelFormatError("a row goes to " + text(experts.n_chosen) + " of " + text(experts.n) +
                           " experts; at least one and at most all of them are needed");
  if (experts.dim == 0) throw ModelFormatError("the feed-forward length of experts is 0");
  constexpr uint64_t kMost = 1u << 31;  // rows of a stack are numbered in 32 bits
  if (experts.n > 1u << 12 || uint64_t{experts.n} * std::max(experts.dim, dim) >= kMost ||
      uint64_t{experts.n_chosen} * std::max(experts.dim, dim) >= kMost)
    throw ModelFormatError(text(experts.n) + " experts of " + text(experts.dim) +
                           " are beyond what any model has");
  if (experts.n % experts.n_groups != 0 || experts.n_groups_chosen > experts.n_groups ||
      experts.n_chosen > experts.n / experts.n_groups * experts.n_groups_chosen)
    throw ModelFormatError(text(experts.n) + " experts, of which a row has " +
                           text(experts.n_chosen) + ", do not go into " + text(experts.n_groups) +
                           " groups, of which it has " + text(experts.n_groups_chosen));
  require_positive(experts.scale, "factor on the weights of experts");
}

void check_streams(const ModelConfig& config) {
  require(config.per_layer_dim, "length of embeddings for each layer", config);
  if (config.n_streams < 2 || config.n_streams > kMaxStreams)
    throw UnsupportedModelError("the residual has " + std::to_string(config.n_streams) +
                                " streams; akunu has 2 to " + std::to_string(kMaxStreams));
  if (config.active_stream >= config.n_streams)
    throw ModelFormatError("layers compute stream " + std::to_string(config.active_stream) +
                           " of the residual, which has " + std::to_string(config.n_streams));
  for (const LayerConfig& layer : config.layers)
    if (layer.gate_cut && !std::isfinite(*layer.gate_cut))
      throw ModelFormatError("what a gate is cut at is no finite number");
}

}  // namespace

const FamilyTraits* find_family(std::string_view architecture) {
  const Family* family = family_of(architecture);
  return family == nullptr ? nullptr : &family->traits;
}

std::string known_architectures() {
  std::string names;
  for (const Family& family : kFamilies)
    names += (names.empty() ? "" : ", ") + std::string(family.architecture);
  return names;
}

ArchDescriptor describe(const ModelConfig& config) {
  const Family* family = family_of(config.architecture);
  if (family == nullptr)
    throw UnsupportedModelError("the architecture is '" + config.architecture + "'; akunu has " +
                                known_architectures());
  require(config.dim, "embedding length", config);
  require(static_cast<uint32_t>(config.layers.size()), "number of layers", config);
  require(config.vocab_size, "vocabulary size", config);
  require(config.context_length, "context length", config);
  for (const LayerConfig& layer : config.layers)
    check_layer(layer, config, family->traits, family->traits.rotates);
  if (family->traits.has_audio_encoder) {
    require(config.n_mels, "number of mel bands", config);
    require(config.audio_positions, "number of positions of its encoder", config);
    require(static_cast<uint32_t>(config.audio_layers.size()), "number of layers of its encoder",
            config);
    for (const LayerConfig& layer : config.audio_layers)
      check_layer(layer, config, family->traits, false);
  }
  constexpr uint64_t kMostPerLayer = 1u << 31;  // numbers of a row have 32 bits in the kernels
  if (config.layers.size() * uint64_t{config.per_layer_dim} >= kMostPerLayer)
    throw ModelFormatError("embeddings of " + std::to_string(config.per_layer_dim) +
                           " numbers for each layer are beyond what any model has");
  if (family->traits.streams) check_streams(config);
  require_positive(config.norm_epsilon, "norm epsilon");
  require_positive(config.rope_theta, "rotary base");
  require_positive(config.rope_linear_factor, "rotary scaling factor");
  require_positive(config.rope_dynamic_factor, "rotary factor of dynamic NTK");
  require_positive(config.rope_attention_factor, "rotary attention factor");
  if (config.rope_theta_windowed != 0)
    require_positive(config.rope_theta_windowed, "rotary base of windowed layers");
  if (config.attention_scale != 0) require_positive(config.attention_scale, "attention scale");
  for (const float factor : {config.embedding_scale, config.residual_scale, config.logit_scale})
    if (factor != 0) require_positive(factor, "factor on embeddings, residual or logits");
  for (const std::optional<float>& cap : {config.attention_soft_cap, config.logit_soft_cap})
    if (cap && *cap != 0) require_positive(*cap, "soft cap");
  ArchDescriptor arch = family->describe(config);
  require_positive(arch.logit_scale, "factor on logits");  // which may be a quotient
  for (const LayerDescriptor& layer : arch.layers)
    if (layer.experts) check_experts(*layer.experts, arch.dim);
  arch.row_style = config.rope_style.value_or(arch.row_style);
  arch.position_offset = config.position_offset;
  arch.dense_activations = config.dense_activations;
  arch.head_activation = config.head_activation.value_or(arch.head_activation);
  if (config.embeds && !arch.embeds) {
    arch.embeds = true;
    arch.pooling = config.pooling.value_or(Pooling::last);
  }
  for (LayerDescriptor& layer : arch.layers) {
    if (config.rope_style && layer.rope_style != RopeStyle::none)
      layer.rope_style = *config.rope_style;
    if (arch.embeds && layer.kv_from)
      throw UnsupportedModelError(
          "layers that share keys and values are not supported where texts are embedded");
    if (arch.embeds && layer.convolution)
      throw UnsupportedModelError("short convolutions are not supported where texts are embedded");
    if (arch.embeds && layer.state)
      throw UnsupportedModelError("recurrent layers are not supported where texts are embedded");
    if (arch.embeds && layer.latent)
      throw UnsupportedModelError("latent attention is not supported where texts are embedded");
    if (arch.embeds && layer.attention_soft_cap > 0)
      throw UnsupportedModelError(
          "a soft cap of attention is not supported where texts are embedded");
    // Where all numbers of a head rotate, a factor on Q and on K is one of its square on their product.
    if (config.rope_attention_factor == 1 || layer.rope_style == RopeStyle::none ||
        !layer.rope_factors || layer.latent)
      continue;
    if (layer.norms_behind_rope)
      throw UnsupportedModelError("a factor on rotated numbers has no place before their norm");
    if (layer.rope_dim != layer.head_dim)
      throw UnsupportedModelError("a factor on rotated numbers needs all of a head to rotate; " +
                                  std::to_string(layer.rope_dim) + " of " +
                                  std::to_string(layer.head_dim) + " do");
    layer.attention_scale *= config.rope_attention_factor * config.rope_attention_factor;
    require_positive(layer.attention_scale, "attention scale, with the rotary attention factor,");
  }
  return arch;
}

}  // namespace akunu
