// What a config.json says of layers that have the gated delta rule or attend (Qwen3.5, Kimi-Linear).
#pragma once

#include "core/model_config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// Which of the model's layers recur, and with which heads. Throws UnsupportedModelError for what akunu does
// not compute.
void read_hf_delta_rules(ConfigObject& config, ModelConfig& model);

// The same of Kimi-Linear, whose channels decay apart and whose attention has no positions: its published object
// `linear_attn_config`, or the keys that transformers writes.
void read_hf_channels(ConfigObject& config, ModelConfig& model);

}  // namespace akunu
