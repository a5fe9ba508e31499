// LFM2 (Liquid AI, 2025): qwen3, most of whose layers have a short convolution instead of attention.
#include "models/common/layers.h"
#include "models/families.h"
#include "weight/hf_config.h"
#include "weight/hf_convolution_config.h"

namespace akunu::models::lfm2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = qwen3::describe(config);
  give_convolutions(arch, config);
  return arch;
}

namespace {

constexpr std::string_view kMixerWords[]{"conv"};
constexpr std::array kDirectories{
    HfModel{.model_type = "lfm2",
            .n_heads = 32,
            .n_kv_heads = 8,
            .vocab_size = 65536,
            .context_length = 128000,
            .rope_theta = 1000000,
            .norm_epsilon = 1e-5f,
            .epsilon_key = "norm_eps",
            .read_layers = [](ConfigObject& config,
                              HfConfig& result) { read_hf_convolutions(config, result.model); },
            .mixer_words = kMixerWords,
            .without_effect = "block_"}};

}  // namespace

constinit const Family family{
    .architecture = "lfm2",
    .titles = {.recurrent = "LFM2 (short convolutions)"},
    .describe = describe,
    .traits = {.convolves = true},
    .gguf_names = &gguf::kLfm2Names,
    .directories = kDirectories,
};

}  // namespace akunu::models::lfm2
