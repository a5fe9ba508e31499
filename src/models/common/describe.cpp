// `describe` looks up the family by the architecture's name, checks the numbers of the file, calls the family's own
// `describe`, and then does what is the same for all families: rotation styles, encoders, scaled rotary positions. It
// never guesses. A number that is missing or impossible is a ModelFormatError; a computation that akunu lacks is an
// UnsupportedModelError.
#include "models/common/describe.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/kernel_params.h"
#include "models/common/layers.h"
#include "models/registry.h"

namespace akunu {
namespace {

using models::require;
using models::require_positive;

void check_layer(const LayerConfig& layer, const ModelConfig& config, const FamilyTraits& family,
                 bool rotates) {
  if (family.alternates && (layer.scans || layer.ffn_dim != 0)) return;
  const bool is_recurrent = (layer.scans && !family.scans_beside) || layer.recurs;
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
  const uint32_t rope_dim = layer.rope_dim != 0 ? layer.rope_dim : config.rope.dim;
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
  const ResidualStreams streams = config.streams.value_or(ResidualStreams{});
  if (streams.n < 2 || streams.n > kMaxStreams)
    throw UnsupportedModelError("the residual has " + std::to_string(streams.n) +
                                " streams; akunu has 2 to " + std::to_string(kMaxStreams));
  if (streams.active >= streams.n)
    throw ModelFormatError("layers compute stream " + std::to_string(streams.active) +
                           " of the residual, which has " + std::to_string(streams.n));
  for (const LayerConfig& layer : config.layers)
    if (layer.gate_cut && !std::isfinite(*layer.gate_cut))
      throw ModelFormatError("what a gate is cut at is no finite number");
}

// Refuses layers that no kernel computes without a cache, for a model that makes vectors of texts.
void check_embeds(const LayerDescriptor& layer) {
  const char* missing = nullptr;
  if (layer.kv_from()) missing = "layers that share keys and values are";
  if (layer.has<ShortConvolution>()) missing = "short convolutions are";
  if (layer.state()) missing = "recurrent layers are";
  if (layer.has<LatentAttention>()) missing = "latent attention is";
  if (missing == nullptr && layer.attention() != nullptr && layer.attention()->soft_cap > 0)
    missing = "a soft cap of attention is";
  if (missing != nullptr)
    throw UnsupportedModelError(std::string(missing) + " not supported where texts are embedded");
}

}  // namespace

ArchDescriptor describe(const ModelConfig& config) {
  const Family* family = find_family(config.architecture);
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
  require_positive(config.rope.theta, "rotary base");
  require_positive(config.rope.linear_factor, "rotary scaling factor");
  require_positive(config.rope.dynamic_factor, "rotary factor of dynamic NTK");
  require_positive(config.rope_attention_factor, "rotary attention factor");
  if (config.rope_theta_windowed != 0)
    require_positive(config.rope_theta_windowed, "rotary base of windowed layers");
  if (config.attention_scale != 0) require_positive(config.attention_scale, "attention scale");
  for (const float factor : {config.embedding_scale, config.residual_scale, config.logit_scale})
    if (factor != 0) require_positive(factor, "factor on embeddings, residual or logits");
  const LayerFactors& of_layer = config.layer_factors;
  for (const float factor :
       {of_layer.attention, config.scan.factor, of_layer.feed_forward, of_layer.gate})
    require_positive(factor, "factor on a part of a layer");
  for (const std::optional<float>& cap : {config.attention_soft_cap, config.logit_soft_cap})
    if (cap && *cap != 0) require_positive(*cap, "soft cap");
  ArchDescriptor arch = family->describe(config);
  require_positive(arch.logit_scale, "factor on logits");  // which may be a quotient
  for (const LayerDescriptor& layer : arch.layers)
    if (layer.feed_forward && layer.feed_forward->experts)
      check_experts(*layer.feed_forward->experts, arch.dim);
  arch.row_style = config.rope_style.value_or(arch.row_style);
  arch.position_offset = config.position_offset;
  arch.n_ahead = config.n_ahead;
  arch.dense_activations = config.dense_activations;
  arch.head_activation = config.head_activation.value_or(arch.head_activation);
  if (config.embeds && !arch.embeds) {
    arch.embeds = true;
    arch.pooling = config.pooling.value_or(Pooling::last);
  }
  for (LayerDescriptor& layer : arch.layers) {
    if (config.rope_style && layer.rotates()) layer.rope()->style = *config.rope_style;
    if (arch.embeds) check_embeds(layer);
    // Where all numbers of a head rotate, a factor on Q and on K is one of its square on their product.
    Attention* const attention = layer.attention();
    if (config.rope_attention_factor == 1 || attention == nullptr || !layer.rotates() ||
        !attention->rope.has_model_factors)
      continue;
    if (attention->norms_behind_rope)
      throw UnsupportedModelError("a factor on rotated numbers has no place before their norm");
    if (attention->rope.dim != attention->head_dim)
      throw UnsupportedModelError("a factor on rotated numbers needs all of a head to rotate; " +
                                  std::to_string(attention->rope.dim) + " of " +
                                  std::to_string(attention->head_dim) + " do");
    attention->scale *= config.rope_attention_factor * config.rope_attention_factor;
    require_positive(attention->scale, "attention scale, with the rotary attention factor,");
  }
  return arch;
}

}  // namespace akunu
