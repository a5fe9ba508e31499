// Reads the keys of a config.json for layers with the selective scan of Mamba-2. In Mamba-2 all layers are such; in
// Granite 4 a layer is a scan or attention, in Nemotron-H a scan, attention or a feed-forward network; in Falcon-H1
// each layer has a scan and attention.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model_config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// Which of the model's layers scan, and how. Where none does, nothing but the list of layers is read.
void read_hf_scans(ConfigObject& config, ModelConfig& model);

// Mamba-2's, all of whose layers scan.
void read_hf_mamba2(ConfigObject& config, ModelConfig& model);

// Falcon-H1's, with its multipliers. Those on the inputs of attention and of the scan are moved to what is projected
// from them: to scores and values, and to z, x, B, C and t.
void read_hf_scans_beside(ConfigObject& config, ModelConfig& model);

// Nemotron-H's. How many layers the file lists; nothing: none.
std::optional<uint32_t> count_hf_mixers(ConfigObject& config);
// What each layer is: of those that are no attention n_kv_heads becomes 0, of all but feed-forward networks ffn_dim.
void read_hf_mixers(ConfigObject& config, ModelConfig& model);

}  // namespace akunu
