// Hunyuan-A13B (2025): the dense model with experts, and one more for all rows.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::hunyuan_moe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = hunyuan_dense::describe(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "hunyuan_v1_moe", .norm_epsilon = 1e-5f, .has_alpha = true}};

}  // namespace

constinit const Family family{
    .architecture = "hunyuan-moe",
    .titles = {.with_experts = "Hunyuan"},
    .describe = describe,
    .traits = {.experts = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::hunyuan_moe
