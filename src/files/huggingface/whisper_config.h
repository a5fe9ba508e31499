// The config.json of Whisper, which has an encoder and a decoder.
#pragma once

#include "files/huggingface/config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// `n_layers`: of the decoder. Throws as read_hf_config does.
HfConfig read_hf_whisper(ConfigObject& config, uint32_t n_layers, std::string_view model_type);

}  // namespace akunu
