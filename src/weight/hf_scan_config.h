// What a config.json says of Granite 4's layers, which scan (Mamba-2) or attend.
#pragma once

#include "core/arch.h"
#include "weight/config_object.h"

namespace akunu {

// Which of the model's layers scan, and how. Where none does, nothing but the list of layers is read.
void read_hf_scans(ConfigObject& config, ModelConfig& model);

}  // namespace akunu
