#include "files/huggingface/delta_rule_config.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

void read_hf_delta_rules(ConfigObject& config, ModelConfig& model) {
  model.delta_rule = {.n_key_heads = config.needed_count("linear_num_key_heads", 16),
                      .n_value_heads = config.needed_count("linear_num_value_heads", 32),
                      .key_dim = config.needed_count("linear_key_head_dim", 128),
                      .value_dim = config.needed_count("linear_value_head_dim", 128),
                      .width = config.needed_count("linear_conv_kernel_dim", 4)};
  if (!config.flag("attn_output_gate").value_or(true))
    config.refuse_support("attn_output_gate", "akunu has the model with gates");
  if (const std::optional<std::string> type = config.text("mamba_ssm_dtype");
      type && *type != "float32")
    config.refuse_support("mamba_ssm_dtype", "akunu keeps states in float32");
  // All are, where there are no experts; else who reads those looks.
  config.find("mlp_only_layers");
  const uint32_t period = config.needed_count("full_attention_interval", 4);
  const JsonValue* const types = config.find("layer_types");
  const bool is_listed = types != nullptr && types->kind == JsonValue::Kind::array;
  for (size_t i = 0; i < model.layers.size(); ++i)
    // Whoever reads windows checks the list.
    model.layers[i].recurs =
        is_listed ? i < types->items.size() && types->items[i].text == "linear_attention"
                  : (i + 1) % period != 0;
}

namespace {

// Layers are counted from 1 there.
std::vector<bool> listed_layers(ConfigObject& object, std::string_view key, size_t n_layers) {
  std::vector<bool> found(n_layers);
  for (const float number : object.numbers(key).value_or(std::vector<float>())) {
    if (!(number >= 1 && number <= static_cast<float>(n_layers)) || number != std::floor(number))
      object.refuse_value(key, "layers are numbers from 1 to " + std::to_string(n_layers));
    found[static_cast<size_t>(number) - 1] = true;
  }
  return found;
}

}  // namespace

void read_hf_channels(ConfigObject& config, ModelConfig& model) {
  std::optional<ConfigObject> published = config.object("linear_attn_config");
  const auto count = [&](const char* key, const char* of_transformers, uint32_t usual) {
    const uint32_t outside = config.needed_count(of_transformers, usual);
    return published ? published->needed_count(key, outside) : outside;
  };
  const uint32_t n_heads = count("num_heads", "linear_num_heads", 32);
  const uint32_t head_dim = count("head_dim", "linear_head_dim", 128);
  model.delta_rule = {.n_key_heads = n_heads,
                      .n_value_heads = n_heads,
                      .key_dim = head_dim,
                      .value_dim = head_dim,
                      .width = count("short_conv_kernel_size", "linear_conv_kernel_dim", 4),
                      .per_channel = true};
  if (!config.flag("mla_use_nope").value_or(true))
    config.refuse_support("mla_use_nope", "akunu has the model without rotary positions");
  if (config.find("rope_scaling") != nullptr)
    config.refuse_support("rope_scaling", "no number of this model rotates");
  const size_t n_layers = model.layers.size();
  const JsonValue* const types = config.find("layer_types");
  if (types != nullptr && types->kind == JsonValue::Kind::array) {
    for (size_t i = 0; i < n_layers; ++i)  // whoever reads windows checks the list
      model.layers[i].recurs =
          i < types->items.size() && types->items[i].text == "linear_attention";
  } else if (published && published->find("kda_layers") != nullptr) {
    const std::vector<bool> recurring = listed_layers(*published, "kda_layers", n_layers);
    const std::vector<bool> attending = listed_layers(*published, "full_attn_layers", n_layers);
    for (size_t i = 0; i < n_layers; ++i) {
      if (recurring[i] == attending[i])
        published->refuse_value("kda_layers", "layer " + std::to_string(i + 1) + " is in " +
                                                  (recurring[i] ? "both" : "none") +
                                                  " of kda_layers and full_attn_layers");
      model.layers[i].recurs = recurring[i];
    }
  } else {
    for (size_t i = 0; i < n_layers; ++i) model.layers[i].recurs = i % 4 != 0 || i == 0;
  }
  if (!published) return;
  for (const char* key : {"kda_layers", "full_attn_layers"}) published->find(key);
  for (const std::string& key : published->unused())
    model.notes.push_back(published->named(key) + " is not known to akunu, which ignores it");
}

}  // namespace akunu
