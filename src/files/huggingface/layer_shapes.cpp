#include "files/huggingface/layer_shapes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace akunu {
namespace {

// What a frequency is divided by that does not turn: GGUF's files have the same number.
constexpr float kStill = 1e30f;

void note_unused(const ConfigObject& config, std::vector<std::string>& notes) {
  for (const std::string& key : config.unused())
    notes.push_back(config.named(key) + " is not known to akunu, which ignores it");
}

// Newer files list the layers whose heads are others.
void read_listed(ConfigObject& config, ModelConfig& model) {
  std::optional<ConfigObject> listed = config.object("per_layer_config");
  if (!listed) return;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    std::optional<ConfigObject> each = listed->object(std::to_string(i));
    if (!each) continue;
    LayerConfig& layer = model.layers[i];
    layer.head_dim = each->needed_count("head_dim", layer.head_dim);
    layer.n_kv_heads = each->needed_count("num_key_value_heads", layer.n_kv_heads);
    for (const std::string& key : each->unused())
      each->refuse_support(key, "akunu has head_dim and num_key_value_heads there");
  }
  for (const std::string& key : listed->unused())
    listed->refuse_value(key, "the model has no such layer");
}

// Older files have keys for the heads of layers that see everything.
void read_heads(ConfigObject& config, ModelConfig& model, bool values_are_keys) {
  const uint32_t dim = config.needed_count("global_head_dim", 512);
  const std::optional<uint32_t> n_kv_heads = config.count("num_global_key_value_heads");
  const bool is_listed = config.find("per_layer_config") != nullptr;
  for (LayerConfig& layer : model.layers) {
    if (layer.windowed.value_or(false)) continue;
    layer.values_are_keys = values_are_keys;
    if (is_listed) continue;
    layer.head_dim = dim;
    if (n_kv_heads && values_are_keys) layer.n_kv_heads = *n_kv_heads;
  }
  read_listed(config, model);
  for (LayerConfig& layer : model.layers) layer.rope_dim = layer.head_dim;
}

void read_experts(ConfigObject& config, ModelConfig& model) {
  for (const char* key : {"num_experts", "moe_intermediate_size", "top_k_experts"})
    config.find(key);
  if (!config.flag("enable_moe_block").value_or(false)) return;
  model.experts.n = config.needed_count("num_experts");
  model.experts.n_chosen = config.needed_count("top_k_experts");
  model.experts.dim = config.needed_count("moe_intermediate_size");
}

float read_theta(ConfigObject& rope, float usual) {
  const float theta = rope.number("rope_theta").value_or(usual);
  if (!(theta > 0)) rope.refuse_value("rope_theta", "it must be above 0");
  return theta;
}

}  // namespace

void read_hf_layer_shapes(ConfigObject& config, const HfLayerShapes& usual, ModelConfig& model) {
  const std::optional<std::string> sees_behind = config.text("use_bidirectional_attention");
  // "vision": of rows of images only.
  if (sees_behind && *sees_behind != "vision")
    config.refuse_support("use_bidirectional_attention", "akunu has null and \"vision\"");
  if (usual.has_experts) read_experts(config, model);
  if (model.layers.back().windowed.value_or(false))
    config.refuse_support("layer_types", "the last layer must see everything");
  read_heads(config, model, config.flag("attention_k_eq_v").value_or(false));

  model.n_shared_kv_layers = config.count("num_kv_shared_layers").value_or(0);
  if (model.n_shared_kv_layers >= model.layers.size())
    config.refuse_value("num_kv_shared_layers",
                        "a layer at least needs keys and values of its own");
  const bool is_wider = config.flag("use_double_wide_mlp").value_or(false);
  for (size_t i = model.layers.size() - model.n_shared_kv_layers; i < model.layers.size(); ++i) {
    model.layers[i].values_are_keys = false;  // it has neither
    if (is_wider) model.layers[i].ffn_dim *= 2;
  }

  if (usual.per_layer_dim == 0) return;
  model.per_layer_dim = config.count("hidden_size_per_layer_input").value_or(usual.per_layer_dim);
  if (config.has_null("hidden_size_per_layer_input")) model.per_layer_dim = 0;
  const uint32_t n_tokens = config.count("vocab_size_per_layer_input").value_or(262144);
  if (model.per_layer_dim > 0 && n_tokens != model.vocab_size)
    config.refuse_support("vocab_size_per_layer_input", "akunu needs what vocab_size is");
}

std::vector<float> read_hf_rope_of_shapes(ConfigObject& config, ModelConfig& model) {
  model.rope.theta = 1e6f;
  model.rope_theta_windowed = 1e4f;
  std::string type = "proportional";
  float part = 0.25f;
  if (std::optional<ConfigObject> both = config.object("rope_parameters")) {
    if (std::optional<ConfigObject> rope = both->object("sliding_attention")) {
      model.rope_theta_windowed = read_theta(*rope, model.rope_theta_windowed);
      if (rope->text("rope_type").value_or("default") != "default")
        rope->refuse_support("rope_type", "of windowed layers akunu has \"default\"");
      rope->find("partial_rotary_factor");  // transformers does not look at it either
      note_unused(*rope, model.notes);
    }
    if (std::optional<ConfigObject> rope = both->object("full_attention")) {
      model.rope.theta = read_theta(*rope, model.rope.theta);
      type = rope->text("rope_type").value_or("default");
      if (type != "default" && type != "proportional")
        rope->refuse_support("rope_type", "akunu has \"default\" and \"proportional\"");
      part = rope->number("partial_rotary_factor").value_or(1.0f);
      if (!(part > 0 && part <= 1))
        rope->refuse_value("partial_rotary_factor", "it must be above 0 and at most 1");
      if (type == "proportional") {
        model.rope.linear_factor = rope->number("factor").value_or(1.0f);
        if (!(model.rope.linear_factor > 0)) rope->refuse_value("factor", "it must be above 0");
      }
      note_unused(*rope, model.notes);
    }
  }

  // The factors are one tensor for all layers that have them.
  uint32_t head_dim = 0;
  for (const LayerConfig& layer : model.layers) {
    if (layer.windowed.value_or(false)) continue;
    if (head_dim != 0 && head_dim != layer.head_dim)
      config.refuse_support("per_layer_config",
                            "layers that see everything must have heads of one length");
    head_dim = layer.head_dim;
  }
  model.rope.dim = head_dim;
  const auto n_turning = static_cast<uint32_t>(part * static_cast<float>(head_dim) / 2);
  if (type == "default" || n_turning == head_dim / 2) return {};
  std::vector<float> divisors(head_dim / 2, kStill);
  std::fill_n(divisors.begin(), n_turning, 1.0f);
  return divisors;
}

}  // namespace akunu
