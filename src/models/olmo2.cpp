// OLMo 2 (2024): norms of all heads of Q and of K. OLMo 3 is the same with windows in three of four
// layers, whose positions are never scaled.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::olmo2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  norm_behind_only(arch);
  give_windows(arch, config, 4, 0);
  give_windows_own_rope(arch, config, 0);
  give_head_norms(arch, HeadNorms::all);
  for (Attention& attention : attention_of(arch))
    attention.rope.has_model_factors = attention.window == 0;
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "olmo2", .names = &hf::kNormsBehindNames, .norm_epsilon = 1e-5f},
    HfModel{.model_type = "olmo3",
            .names = &hf::kNormsBehindNames,
            .windows = HfWindows{.length = 4096, .period = 4},
            .rope_theta = 500000,
            .norm_epsilon = 1e-5f}};

constexpr PreTokenizerName kPreTokenizers[]{{"olmo", &cuts::kGpt2}};

}  // namespace

constinit const Family family{
    .architecture = "olmo2",
    .titles = {.dense = "OLMo 2 and 3"},
    .describe = describe,
    .traits = {.windows = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::olmo2
