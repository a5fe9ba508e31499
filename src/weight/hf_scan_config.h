// What a config.json says of layers that scan (Mamba-2): Granite 4's, which scan or attend, and Nemotron-H's,
// which do that or are a feed-forward network.
#pragma once

#include <cstdint>
#include <optional>

#include "core/arch.h"
#include "weight/config_object.h"

namespace akunu {

// Which of the model's layers scan, and how. Where none does, nothing but the list of layers is read.
void read_hf_scans(ConfigObject& config, ModelConfig& model);

// Nemotron-H's. How many layers the file lists; nothing: none.
std::optional<uint32_t> count_hf_mixers(ConfigObject& config);
// What each layer is: of those that are no attention n_kv_heads becomes 0, of all but feed-forward networks ffn_dim.
void read_hf_mixers(ConfigObject& config, ModelConfig& model);

}  // namespace akunu
