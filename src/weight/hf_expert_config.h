// What a config.json says of a mixture of experts: each family has its own words for it.
#pragma once

#include <string_view>

#include "core/arch.h"
#include "weight/config_object.h"

namespace akunu {

// Whether a key of experts is read for this model_type.
bool is_expert_key(std::string_view model_type, std::string_view key);

// Reads them into `model.experts`; nothing for a model_type without experts. Throws what ConfigObject
// throws, and UnsupportedModelError for layers without experts in between.
void read_hf_experts(ConfigObject& config, std::string_view model_type, ModelConfig& model);

}  // namespace akunu
