// Gemma 2 (2024): norms after attention and after the feed-forward network, soft caps on the logits and on the
// scores of attention, a sliding window in every second layer.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::gemma2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = gemma::describe(config);
  give_windows(arch, config, 2, 4096);
  give_attention_scale(arch, config, 46);
  give_soft_caps(arch, config, 50.0f, 30.0f);
  arch.post_norms = true;
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "gemma2",
                                          .names = &hf::kLaterGemmaNames,
                                          .head_dim = 256,
                                          .windows = HfWindows{.length = 4096, .period = 2},
                                          .scale_dim = 256,
                                          .activation = "gelu_pytorch_tanh",
                                          .means_gelu_tanh = true}};

}  // namespace

constinit const Family family{
    .architecture = "gemma2",
    .titles = {.dense = "Gemma 2"},
    .describe = describe,
    .traits = {.windows = true, .soft_caps = true, .attention_scale = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::gemma2
