#include "files/huggingface/whisper_config.h"

#include <initializer_list>
#include <string>

namespace akunu {
namespace {

// Keys that change training, other uses of a model, or how a text is written, which Python reads
// (python/akunu/speech).
constexpr std::initializer_list<const char*> kElsewhere = {
    "dropout",
    "activation_dropout",
    "encoder_layerdrop",
    "decoder_layerdrop",
    "init_std",
    "is_encoder_decoder",
    "use_weighted_layer_sum",
    "classifier_proj_size",
    "apply_spec_augment",
    "mask_time_prob",
    "mask_time_length",
    "mask_time_min_masks",
    "mask_feature_prob",
    "mask_feature_length",
    "mask_feature_min_masks",
    "median_filter_width",
    "suppress_tokens",
    "begin_suppress_tokens",
    "forced_decoder_ids",
    "max_length",
    "lang_to_id",
    "alignment_heads",
};

LayerConfig read_layer(ConfigObject& config, uint32_t dim, const char* heads, const char* ffn) {
  LayerConfig layer;
  layer.n_heads = layer.n_kv_heads = config.needed_count(heads);
  if (dim % layer.n_heads != 0)
    config.refuse_value(heads, "d_model is " + std::to_string(dim) + ", which it does not divide");
  layer.head_dim = dim / layer.n_heads;
  layer.ffn_dim = config.needed_count(ffn);
  return layer;
}

}  // namespace

HfConfig read_hf_whisper(ConfigObject& config, uint32_t n_layers, std::string_view) {
  HfConfig result;
  ModelConfig& model = result.model;
  result.tied = config.flag("tie_word_embeddings").value_or(true);
  model.architecture = "whisper";
  model.dim = config.needed_count("d_model");
  model.vocab_size = config.needed_count("vocab_size", 51865);
  model.context_length = config.needed_count("max_target_positions", 448);
  model.norm_epsilon = 1e-5f;
  model.rope.theta = 10000;  // nothing turns
  model.n_mels = config.needed_count("num_mel_bins", 80);
  model.audio_positions = config.needed_count("max_source_positions", 1500);
  const uint32_t n_encoder_layers = config.needed_count("encoder_layers");
  if (n_encoder_layers > kMostLayers)
    config.refuse_value("encoder_layers", "that is out of any sensible range");
  model.layers.assign(n_layers,
                      read_layer(config, model.dim, "decoder_attention_heads", "decoder_ffn_dim"));
  model.audio_layers.assign(
      n_encoder_layers,
      read_layer(config, model.dim, "encoder_attention_heads", "encoder_ffn_dim"));
  if (const auto name = config.text("activation_function"); name && *name != "gelu")
    config.refuse_support("activation_function", "akunu has gelu for whisper");
  if (config.flag("scale_embedding").value_or(false))
    config.refuse_support("scale_embedding", "it is not supported for whisper");
  for (const char* key : kElsewhere) config.find(key);
  return result;
}

}  // namespace akunu
