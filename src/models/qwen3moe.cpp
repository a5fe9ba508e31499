// Qwen3-MoE (2025): qwen3 with experts, whose weights are normalised.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::qwen3moe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = qwen3::describe(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{
        .model_type = "qwen3_moe",
        .windows = HfWindows{.length = 4096, .first = 28, .asked = true},
        .experts =
            HfExperts{.usual_n = 128, .usual_n_chosen = 8, .usual_dim = 768, .normalises = false}},
    HfModel{.model_type = "qwen3_vl_moe_text",
            .rope_theta = 500000,
            .experts = HfExperts{.usual_n = 60, .usual_n_chosen = 4, .usual_dim = 1408},
            .stacks = StackOrder::either}};
constexpr std::array kWithImages{ImageModel{"qwen3_vl_moe", "qwen3_vl_moe_text"}};

}  // namespace

constinit const Family family{
    .architecture = "qwen3moe",
    .titles = {.with_experts = "Qwen3-MoE"},
    .describe = describe,
    .traits = {.windows = true, .experts = true},
    .directories = kDirectories,
    .with_images = kWithImages,
};

}  // namespace akunu::models::qwen3moe
