#include "core/arch.h"

#include <array>
#include <cmath>

#include "core/error.h"

namespace akunu {
namespace {

void require(uint32_t value, std::string_view what, const ModelConfig& config) {
  if (value == 0)
    throw ModelFormatError("the " + config.architecture + " model does not say its " +
                           std::string(what) + ", or says 0");
}

// Pre-norm transformer with grouped-query attention, rotary positions and a gated feed-forward
// network (Touvron et al., 2023).
ArchDescriptor llama(const ModelConfig& config) {
  LayerDescriptor layer;
  layer.n_heads = config.n_heads;
  layer.n_kv_heads = config.n_kv_heads;
  layer.head_dim = config.head_dim;
  layer.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  // GGUF stores the Q and K rows of llama permuted, so that neighbours rotate together.
  layer.rope_style = RopeStyle::interleaved;
  layer.rope_dim = config.rope_dim;
  layer.rope_theta = config.rope_theta;
  layer.rope_linear_factor = config.rope_linear_factor;
  layer.activation = Activation::silu;
  layer.ffn_dim = config.ffn_dim;

  ArchDescriptor arch;
  arch.dim = config.dim;
  arch.vocab_size = config.vocab_size;
  arch.context_length = config.context_length;
  arch.norm_epsilon = config.norm_epsilon;
  arch.layers.assign(config.n_layers, layer);
  return arch;
}

// qwen2 adds biases to Q, K and V, qwen3 a norm per head of Q and K: both are seen from the
// tensors.
ArchDescriptor qwen(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  for (LayerDescriptor& layer : arch.layers) layer.rope_style = RopeStyle::halves;
  return arch;
}

struct Family {
  std::string_view architecture;
  ArchDescriptor (*describe)(const ModelConfig&);
};

constexpr std::array kFamilies{
    Family{"llama", llama},
    Family{"qwen2", qwen},
    Family{"qwen3", qwen},
};

const Family* find_family(std::string_view name) {
  for (const Family& family : kFamilies)
    if (family.architecture == name) return &family;
  return nullptr;
}

}  // namespace

bool is_known_architecture(std::string_view name) { return find_family(name) != nullptr; }

std::string known_architectures() {
  std::string names;
  for (const Family& family : kFamilies)
    names += (names.empty() ? "" : ", ") + std::string(family.architecture);
  return names;
}

ArchDescriptor describe(const ModelConfig& config) {
  const Family* family = find_family(config.architecture);
  if (family == nullptr)
    throw UnsupportedModelError("the architecture is '" + config.architecture + "'; akunu has " +
                                known_architectures());
  require(config.dim, "embedding length", config);
  require(config.n_layers, "number of layers", config);
  require(config.n_heads, "number of heads", config);
  require(config.n_kv_heads, "number of key/value heads", config);
  require(config.head_dim, "head dimension", config);
  require(config.ffn_dim, "feed-forward length", config);
  require(config.vocab_size, "vocabulary size", config);
  require(config.context_length, "context length", config);
  if (config.n_heads % config.n_kv_heads != 0)
    throw ModelFormatError(std::to_string(config.n_heads) + " heads cannot share " +
                           std::to_string(config.n_kv_heads) + " key/value heads evenly");
  constexpr uint64_t kMostNumbers = 1u << 31;  // their products have 32 bits in the kernels
  if (uint64_t{config.n_heads} * config.head_dim >= kMostNumbers)
    throw ModelFormatError(std::to_string(config.n_heads) + " heads of " +
                           std::to_string(config.head_dim) +
                           " numbers are beyond what any model has");
  if (config.rope_dim == 0 || config.rope_dim % 2 != 0 || config.rope_dim > config.head_dim)
    throw ModelFormatError("the rotary dimension is " + std::to_string(config.rope_dim) +
                           "; it must be even and at most the head dimension, " +
                           std::to_string(config.head_dim));
  if (!(config.norm_epsilon > 0) || !std::isfinite(config.norm_epsilon))
    throw ModelFormatError("the norm epsilon is " + std::to_string(config.norm_epsilon) +
                           "; it must be a positive number");
  if (!(config.rope_theta > 0) || !std::isfinite(config.rope_theta))
    throw ModelFormatError("the rotary base is " + std::to_string(config.rope_theta) +
                           "; it must be a positive number");
  if (!(config.rope_linear_factor > 0) || !std::isfinite(config.rope_linear_factor))
    throw ModelFormatError("the rotary scaling factor is " +
                           std::to_string(config.rope_linear_factor) +
                           "; it must be a positive number");
  return family->describe(config);
}

}  // namespace akunu
