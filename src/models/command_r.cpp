// Command-R (Cohere, 2024): one layer norm without a bias, which attention and feed-forward both read;
// logits are multiplied by a number.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::command_r {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  arch.norm = NormKind::layer;
  arch.parallel = true;
  if (config.logit_scale != 0) arch.logit_scale = config.logit_scale;
  return arch;
}

namespace {

constexpr std::string_view kOwnKeys[]{"logit_scale"};
constexpr std::array kDirectories{HfModel{.model_type = "cohere",
                                          .rope_theta = 500000,
                                          .norm_epsilon = 1e-5f,
                                          .epsilon_key = "layer_norm_eps",
                                          .logit_scale = 0.0625f,
                                          .own_keys = kOwnKeys}};

constexpr PreTokenizerName kPreTokenizers[]{{"command-r", &cuts::kStarcoder}};

}  // namespace

constinit const Family family{
    .architecture = "command-r",
    .titles = {.dense = "Command-R"},
    .describe = describe,
    .traits = {.layer_norm = true, .logit_scale = true, .interleaves = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::command_r
