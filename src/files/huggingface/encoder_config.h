// The config.json of encoders whose numbers have other names than those of decoders: BERT and RoBERTa,
// nomic-bert, ModernBERT.
#pragma once

#include <string_view>

#include "files/huggingface/config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// Each reads a config.json whose model_type ("bert", "roberta", ...) is `model_type`, and throws what read_hf_config throws.
HfConfig read_hf_bert(ConfigObject& config, uint32_t n_layers, std::string_view model_type);
HfConfig read_hf_nomic_bert(ConfigObject& config, uint32_t n_layers, std::string_view model_type);
HfConfig read_hf_modern_bert(ConfigObject& config, uint32_t n_layers, std::string_view model_type);

}  // namespace akunu
