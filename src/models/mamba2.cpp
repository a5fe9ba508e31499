// Mamba-2 (Dao and Gu, 2024): all layers scan.
#include "files/huggingface/config.h"
#include "files/huggingface/scan_config.h"
#include "models/families.h"

namespace akunu::models::mamba2 {

ArchDescriptor describe(const ModelConfig& config) { return nemotron_h::describe(config); }

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "mamba2",
            .names = &hf::kMixersNames,
            .vocab_size = 32768,
            .context_length = 1048576,
            .norm_epsilon = 1e-5f,
            .epsilon_key = "layer_norm_epsilon",
            .has_attention = false,
            .read_layers = [](ConfigObject& config, HfConfig& result) {
              read_hf_mamba2(config, result.model);
            }}};

}  // namespace

constinit const Family family{
    .architecture = "mamba2",
    .titles = {.recurrent = "Mamba-2"},
    .describe = describe,
    .traits = {.rotates = false, .scans = true, .alternates = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::mamba2
