#include "files/huggingface/encoder_config.h"

#include <array>
#include <initializer_list>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

// The keys of one architecture's config.json, and what transformers takes where the file has none.
struct EncoderKeys {
  const char* dim;
  const char* n_heads;
  const char* ffn_dim;
  const char* positions;
  const char* epsilon;
  uint32_t usual_dim = 768;
  uint32_t usual_heads = 12;
  uint32_t usual_ffn_dim = 3072;
  uint32_t usual_positions = 512;
  uint32_t usual_vocab_size = 30522;
  float usual_epsilon = 1e-12f;
};

constexpr EncoderKeys kBert{"hidden_size", "num_attention_heads", "intermediate_size",
                            "max_position_embeddings", "layer_norm_eps"};
constexpr EncoderKeys kNomic{.dim = "n_embd",
                             .n_heads = "n_head",
                             .ffn_dim = "n_inner",
                             .positions = "n_positions",
                             .epsilon = "layer_norm_epsilon",
                             .usual_positions = 8192,
                             .usual_vocab_size = 30528};
constexpr EncoderKeys kModern{.dim = "hidden_size",
                              .n_heads = "num_attention_heads",
                              .ffn_dim = "intermediate_size",
                              .positions = "max_position_embeddings",
                              .epsilon = "norm_eps",
                              .usual_ffn_dim = 1152,
                              .usual_positions = 8192,
                              .usual_vocab_size = 50368,
                              .usual_epsilon = 1e-5f};

HfConfig read_sizes(ConfigObject& config, uint32_t n_layers, const EncoderKeys& keys) {
  HfConfig result;
  ModelConfig& model = result.model;
  model.dim = config.needed_count(keys.dim, keys.usual_dim);
  model.vocab_size = config.needed_count("vocab_size", keys.usual_vocab_size);
  model.context_length = config.needed_count(keys.positions, keys.usual_positions);
  model.norm_epsilon = config.number(keys.epsilon).value_or(keys.usual_epsilon);
  if (!(model.norm_epsilon > 0)) config.refuse_value(keys.epsilon, "it must be above 0");
  LayerConfig layer;
  layer.n_heads = layer.n_kv_heads = config.needed_count(keys.n_heads, keys.usual_heads);
  if (model.dim % layer.n_heads != 0)
    config.refuse_value(keys.n_heads, std::string(keys.dim) + " is " + std::to_string(model.dim) +
                                          ", which it does not divide");
  layer.head_dim = model.dim / layer.n_heads;
  layer.ffn_dim = config.needed_count(keys.ffn_dim, keys.usual_ffn_dim);
  model.layers.assign(n_layers, layer);
  model.rope.theta = 10000;
  model.rope.dim = layer.head_dim;
  model.rope_style = RopeStyle::halves;
  config.flag("tie_word_embeddings");  // of what guesses hidden tokens
  return result;
}

void need_text(ConfigObject& config, std::string_view key, std::string_view wanted,
               std::string_view model_type) {
  if (const auto text = config.text(key); text && *text != wanted)
    config.refuse_support(key,
                          "akunu has " + std::string(wanted) + " for " + std::string(model_type));
}

void refuse_flags(ConfigObject& config, std::initializer_list<std::string_view> keys,
                  std::string_view model_type) {
  for (const std::string_view key : keys)
    if (config.flag(key).value_or(false))
      config.refuse_support(key, "it is not supported for " + std::string(model_type));
}

float rotary_base(ConfigObject& config, std::string_view key, float usual) {
  const float base = config.number(key).value_or(usual);
  if (!(base > 0)) config.refuse_value(key, "it must be above 0");
  return base;
}

}  // namespace

// Norms behind the sums, learned positions. RoBERTa counts them from the padding token's id on.
HfConfig read_hf_bert(ConfigObject& config, uint32_t n_layers, std::string_view model_type) {
  HfConfig result = read_sizes(config, n_layers, kBert);
  result.model.architecture = "bert";
  refuse_flags(config, {"is_decoder", "add_cross_attention"}, model_type);
  need_text(config, "position_embedding_type", "absolute", model_type);
  need_text(config, "hidden_act", "gelu", model_type);
  if (model_type == "bert") return result;
  const uint32_t offset = config.count("pad_token_id").value_or(1) + 1;
  if (offset >= result.model.context_length)
    config.refuse_value("pad_token_id", "no positions are left behind it");
  result.model.position_offset = offset;
  result.model.context_length -= offset;
  return result;
}

// Norms behind the sums, rotary positions, SiLU in the gate. transformers writes it with BERT's keys.
HfConfig read_hf_nomic_bert(ConfigObject& config, uint32_t n_layers, std::string_view) {
  constexpr std::string_view kType = "nomic_bert";
  const bool of_authors = config.find("n_embd") != nullptr;
  EncoderKeys keys = kBert;
  keys.usual_positions = 2048;
  HfConfig result = read_sizes(config, n_layers, of_authors ? kNomic : keys);
  result.model.architecture = "nomic-bert";
  if (of_authors) {
    result.model.rope.theta = rotary_base(config, "rotary_emb_base", 1000);
    refuse_flags(config,
                 {"prenorm", "parallel_block", "causal", "use_rms_norm", "rotary_emb_interleaved",
                  "is_decoder", "add_cross_attention"},
                 kType);
    for (const std::string_view key : {"num_experts", "moe_every_n_layers"})
      if (config.count(key).value_or(0) > 0)
        config.refuse_support(key, "mixtures of experts are not supported");
    for (const std::string_view key : {"rotary_emb_fraction", "mup_embed_scale", "mup_width_scale"})
      if (const auto value = config.number(key); value && *value != 1)
        config.refuse_support(key, "it is not supported for nomic_bert");
    // Frequencies that stretch with texts of more than the trained length: shorter ones are the same.
    const uint32_t trained = config.count("max_trained_positions").value_or(2048);
    if (config.number("rotary_scaling_factor") && result.model.context_length > trained) {
      result.model.context_length = trained;
      result.model.notes.push_back("context reduced to " + std::to_string(trained) +
                                   " positions: rotary_scaling_factor is for longer texts");
    }
    need_text(config, "activation_function", "swiglu", kType);
    for (const std::string_view key :
         {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "use_flash_attn", "use_xentropy",
          "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "reorder_and_upcast_attn"})
      config.find(key);  // biases are seen from the tensors
    return result;
  }
  refuse_flags(config, {"is_decoder", "add_cross_attention"}, kType);
  need_text(config, "hidden_act", "silu", kType);
  if (auto rope = config.object("rope_parameters")) {
    need_text(*rope, "rope_type", "default", kType);
    result.model.rope.theta = rotary_base(*rope, "rope_theta", 1000);
  } else {
    result.model.rope.theta = rotary_base(config, "rope_theta", 1000);
  }
  if (config.count("head_dim").value_or(result.model.rope.dim) != result.model.rope.dim)
    config.refuse_support("head_dim", "akunu has hidden_size / num_attention_heads for nomic_bert");
  return result;
}

namespace {

// Of each layer, whether it sees a window.
void read_windows(ConfigObject& config, ModelConfig& model) {
  model.window = config.needed_count("local_attention", 128);
  const uint32_t period = config.needed_count("global_attn_every_n_layers", 3);
  for (size_t i = 0; i < model.layers.size(); ++i) model.layers[i].windowed = i % period != 0;
  const JsonValue* const list = config.find("layer_types");
  if (list == nullptr) return;
  if (list->kind != JsonValue::Kind::array || list->items.size() != model.layers.size())
    config.refuse_value("layer_types", "a list of one entry per layer is needed");
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const std::string& type = list->items[i].text;
    if (type != "sliding_attention" && type != "full_attention")
      config.refuse_support("layer_types",
                            "akunu has \"full_attention\" and \"sliding_attention\"");
    model.layers[i].windowed = type == "sliding_attention";
  }
}

}  // namespace

// Norms before the parts of a layer, rotary positions, GELU in the gate, windows.
HfConfig read_hf_modern_bert(ConfigObject& config, uint32_t n_layers, std::string_view) {
  constexpr std::string_view kType = "modernbert";
  HfConfig result = read_sizes(config, n_layers, kModern);
  ModelConfig& model = result.model;
  model.architecture = "modern-bert";
  read_windows(config, model);
  model.rope.theta = rotary_base(config, "global_rope_theta", 160000);
  model.rope_theta_windowed = rotary_base(config, "local_rope_theta", 10000);
  if (auto rope = config.object("rope_parameters")) {
    for (const auto& [key, base] : {std::pair{"full_attention", &model.rope.theta},
                                    std::pair{"sliding_attention", &model.rope_theta_windowed}})
      if (auto part = rope->object(key)) {
        need_text(*part, "rope_type", "default", kType);
        *base = rotary_base(*part, "rope_theta", *base);
      }
  }
  need_text(config, "hidden_activation", "gelu", kType);
  need_text(config, "classifier_activation", "gelu", kType);
  for (const std::string_view key : {"norm_bias", "mlp_bias", "attention_bias"}) config.flag(key);
  const std::string pooling = config.text("classifier_pooling").value_or("cls");
  if (pooling != "cls" && pooling != "mean")
    config.refuse_support("classifier_pooling", "akunu has cls and mean");
  model.pooling = pooling == "cls" ? Pooling::first : Pooling::mean;
  return result;
}

}  // namespace akunu
