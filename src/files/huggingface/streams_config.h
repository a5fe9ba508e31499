// What a config.json says of Gemma 3n's layers: streams of the residual (AltUp), the branch beside
// attention (LAuReL), gates of which the largest numbers count, embeddings for each layer, keys and values
// of others.
#pragma once

#include "core/model_config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// Fills `model`, whose layers are there. Throws ModelFormatError for numbers that make no sense, and
// UnsupportedModelError for what akunu does not have.
void read_hf_streams(ConfigObject& config, ModelConfig& model);

}  // namespace akunu
