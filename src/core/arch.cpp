// Descriptions of models: which families there are, and what holds for all of them. arch.h says what an
// ArchDescriptor is.
//
// 1. What it does. `describe` finds the family by the name that the file gives (kFamilies), checks
//    the file's numbers, calls the family's function (families/), and applies what holds for all
//    families: rotation styles, encoders, factors on rotated numbers.
// 2. What bounds it. Nothing: it runs once, at load. What it must not do is guess: a number that
//    is missing or impossible is a ModelFormatError, what akunu does not compute an
//    UnsupportedModelError.
// 3. Where to change it. A new family: its function in families/, a row of kFamilies, names of its
//    tensors (weight/gguf_names.cpp, weight/hf_names.cpp), its keys (weight/hf_config.cpp). What no
//    family has had so far: a field of LayerDescriptor or ArchDescriptor, and what it emits in
//    forward.cpp. docs/decisions/0036.
#include "core/arch.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/families/families.h"
#include "core/kernel_params.h"

namespace akunu {
namespace families {

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

}  // namespace families

namespace {

using families::require;
using families::require_positive;

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
    Family{"llama", families::llama_or_mixtral, {.windows = true, .experts = true}},
    Family{"qwen2", families::qwen2, kWindows},
    Family{"qwen3", families::qwen3, kWindows},
    Family{"phi3", families::phi3, kWindows},
    Family{"gemma", families::gemma, {}},
    Family{"gemma2", families::gemma2, kLaterGemma},
    Family{"gemma3", families::gemma3, kLaterGemma},
    Family{"gemma3n",
           families::gemma3n,
           {.windows = true, .soft_caps = true, .layer_shapes = true, .streams = true}},
    Family{"gemma4",
           families::gemma4,
           {.windows = true, .soft_caps = true, .experts = true, .layer_shapes = true}},
    Family{"mistral3",
           families::mistral3,
           {.windows = true, .attention_scale = true, .query_growth = true}},
    Family{"granite",
           families::granite,
           {.attention_scale = true,
            .multipliers = true,
            .logit_scale = true,
            .may_not_rotate = true}},
    Family{"smollm3", families::smollm3, kWindows},
    Family{"olmo2", families::olmo2, kWindows},
    Family{"glm4", families::glm4, {.interleaves = true}},
    Family{"ernie4_5", families::ernie4_5, {.interleaves = true}},
    Family{"seed_oss", families::seed_oss, {}},
    Family{"hunyuan-dense", families::hunyuan_dense, {}},
    Family{"exaone4", families::exaone4, kWindows},
    Family{"starcoder2", families::starcoder2, {.windows = true, .layer_norm = true}},
    Family{"command-r",
           families::command_r,
           {.layer_norm = true, .logit_scale = true, .interleaves = true}},
    Family{"cohere2", families::cohere2, kCohere},
    Family{"deepseek2",
           families::deepseek2,
           {.attention_scale = true, .experts = true, .interleaves = true, .latent = true}},
    Family{"minicpm3", families::minicpm3, {.attention_scale = true, .latent = true}},
    Family{"lfm2", families::lfm2, {.convolves = true}},
    Family{"qwen35", families::qwen35, {.recurs = true, .tiles_values = true, .predicts = true}},
    Family{"qwen2moe", families::qwen2_moe, {.windows = true, .experts = true}},
    Family{"qwen3moe", families::qwen3_moe, {.windows = true, .experts = true}},
    Family{"qwen35moe",
           families::qwen35_moe,
           {.experts = true, .recurs = true, .tiles_values = true, .predicts = true}},
    Family{"qwen3next", families::qwen35_moe, {.experts = true, .recurs = true, .predicts = true}},
    Family{"kimi-linear",
           families::kimi_linear,
           {.rotates = false,
            .experts = true,
            .latent = true,
            .recurs = true,
            .channels_decay = true}},
    Family{"olmoe", families::olmoe, {.experts = true}},
    Family{"granitemoe",
           families::granite_moe,
           {.attention_scale = true,
            .multipliers = true,
            .logit_scale = true,
            .may_not_rotate = true,
            .experts = true}},
    Family{"granitehybrid",
           families::granite_hybrid,
           {.attention_scale = true,
            .multipliers = true,
            .logit_scale = true,
            .may_not_rotate = true,
            .experts = true,
            .scans = true}},
    Family{
        "nemotron_h", families::nemotron_h, {.rotates = false, .scans = true, .alternates = true}},
    Family{"nemotron_h_moe",
           families::nemotron_h_moe,
           {.rotates = false, .experts = true, .scans = true, .alternates = true}},
    Family{"falcon-h1", families::falcon_h1, {.scans_beside = true}},
    Family{"mamba2", families::nemotron_h, {.rotates = false, .scans = true, .alternates = true}},
    Family{"glm4moe", families::glm4_moe, {.experts = true}},
    Family{"hunyuan-moe", families::hunyuan_moe, {.experts = true}},
    Family{"deepseek", families::deepseek, {.experts = true}},
    Family{"gpt-oss", families::gpt_oss, {.windows = true, .experts = true}},
    Family{"ernie4_5-moe", families::ernie4_5_moe, {.experts = true, .interleaves = true}},
    Family{"bert", families::bert, {.encoder = true, .layer_norm = true, .rotates = false}},
    Family{"nomic-bert", families::nomic_bert, {.encoder = true, .layer_norm = true}},
    Family{"jina-bert-v2",
           families::jina_bert_v2,
           {.encoder = true, .layer_norm = true, .rotates = false}},
    Family{"modern-bert",
           families::modern_bert,
           {.windows = true, .encoder = true, .layer_norm = true, .full_layer_first = true}},
    Family{"eurobert", families::eurobert, {.encoder = true}},
    Family{"gemma-embedding",
           families::gemma_embedding,
           {.windows = true, .attention_scale = true, .encoder = true}},
    Family{"whisper",
           families::whisper,
           {.layer_norm = true, .rotates = false, .has_audio_encoder = true}},
};

const Family* family_of(std::string_view architecture) {
  for (const Family& family : kFamilies)
    if (family.architecture == architecture) return &family;
  return nullptr;
}

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
  const LayerFactors& of_layer = config.layer_factors;
  for (const float factor :
       {of_layer.attention, of_layer.scan, of_layer.feed_forward, of_layer.gate})
    require_positive(factor, "factor on a part of a layer");
  for (const std::optional<float>& cap : {config.attention_soft_cap, config.logit_soft_cap})
    if (cap && *cap != 0) require_positive(*cap, "soft cap");
  ArchDescriptor arch = family->describe(config);
  require_positive(arch.logit_scale, "factor on logits");  // which may be a quotient
  for (const LayerDescriptor& layer : arch.layers)
    if (layer.experts) check_experts(*layer.experts, arch.dim);
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
