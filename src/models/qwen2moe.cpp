// Qwen2 (2024) with experts, and one more for all rows, with a router of its own.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::qwen2moe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "qwen2_moe",
            .windows = HfWindows{.length = 4096, .first = 28, .asked = true},
            .experts = HfExperts{.usual_n = 60,
                                 .usual_n_chosen = 4,
                                 .usual_dim = 1408,
                                 .shared_dim = "shared_expert_intermediate_size",
                                 .usual_shared_dim = 5632,
                                 .normalises = false}}};

}  // namespace

constinit const Family family{
    .architecture = "qwen2moe",
    .titles = {.with_experts = "Qwen2-MoE"},
    .describe = describe,
    .traits = {.windows = true, .experts = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::qwen2moe
