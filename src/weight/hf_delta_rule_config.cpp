#include "weight/hf_delta_rule_config.h"

#include <cstddef>
#include <optional>
#include <string>

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

}  // namespace akunu
