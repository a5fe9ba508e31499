// MiniCPM3 (OpenBMB, 2024): the same with Granite's factors, which its GGUF files do not say; dimension i
// of what rotates turns with i + half.
#include <cmath>

#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::minicpm3 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = deepseek2::describe(config);
  rotate_as(arch, RopeStyle::halves);
  const auto or_usual = [](float said, float usual) { return said != 0 ? said : usual; };
  arch.embedding_scale = or_usual(config.embedding_scale, 12);
  arch.residual_scale =
      or_usual(config.residual_scale, 1.4f / std::sqrt(static_cast<float>(config.layers.size())));
  arch.logit_scale = 1 / or_usual(config.logit_scale, static_cast<float>(config.dim) / 256);
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{
    .model_type = "minicpm3",
    .norm_epsilon = 1e-5f,
    .latents =
        HfLatents{
            .rank = 256, .query_rank = 768, .plain_dim = 64, .rotated_dim = 32, .value_dim = 0},
    .names_factors = true}};

}  // namespace

constinit const Family family{
    .architecture = "minicpm3",
    .titles = {.dense = "MiniCPM3"},
    .describe = describe,
    .traits = {.attention_scale = true, .latent = true},
    .written = {.rope_factors = true, .factors_unsaid = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::minicpm3
