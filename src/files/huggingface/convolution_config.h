// What a config.json says of LFM2's layers, which convolve or attend.
#pragma once

#include <cstdint>

#include "core/model_config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// The feed-forward length, which the file may have before it was cut and rounded.
uint32_t read_hf_adjusted_ffn_dim(ConfigObject& config);

// Which of the model's layers convolve, and how wide.
void read_hf_convolutions(ConfigObject& config, ModelConfig& model);

}  // namespace akunu
