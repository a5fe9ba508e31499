// DeepSeek-V2 (2024), V3 and what has their shape: latent attention in llama's frame.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::deepseek2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_latents(arch, config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "deepseek_v2", .latents = HfLatents{}},
                                  HfModel{.model_type = "deepseek_v3", .latents = HfLatents{}},
                                  HfModel{.model_type = "kimi_k2", .latents = HfLatents{}}};

}  // namespace

constinit const Family family{
    .architecture = "deepseek2",
    .titles = {.with_experts = "DeepSeek-V2 and V3, Kimi K2"},
    .describe = describe,
    .traits = {.attention_scale = true, .experts = true, .interleaves = true, .latent = true},
    .written = {.always_with_experts = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::deepseek2
