// What a config.json of Gemma 4 says of layers that are not alike: lengths of heads, who has keys and
// values, embeddings of layers; and how parts of heads rotate.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model_config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// What such a family may have, and transformers takes where the file does not say.
struct HfLayerShapes {
  uint32_t per_layer_dim = 0;  // 0: it has no embeddings of layers
  bool has_experts = false;
};

// Fills what differs between the layers of `model`, of which is known which see a window. Throws
// ModelFormatError for numbers that make no sense, and UnsupportedModelError for what akunu does not
// have.
void read_hf_layer_shapes(ConfigObject& config, const HfLayerShapes& usual, ModelConfig& model);

// Reads `rope_parameters` into `model`, and returns the divisors of the frequencies of layers that see
// everything, [head_dim / 2]; empty: all 1. Throws as above.
std::vector<float> read_hf_rope_of_shapes(ConfigObject& config, ModelConfig& model);

}  // namespace akunu
