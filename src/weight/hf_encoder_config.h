// The config.json of encoders whose numbers have other names than those of decoders: BERT and RoBERTa,
// nomic-bert, ModernBERT.
#pragma once

#include <string_view>

#include "weight/config_object.h"
#include "weight/hf_config.h"

namespace akunu {

// `model_type`: "bert", "roberta", ..., "nomic_bert" or "modernbert". Throws as read_hf_config does.
HfConfig read_hf_encoder(ConfigObject& config, uint32_t n_layers, std::string_view model_type);

}  // namespace akunu
