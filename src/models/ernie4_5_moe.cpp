// ERNIE 4.5 (2025): llama with a bias that says who is chosen, and experts for all rows.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::ernie4_5_moe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "ernie4_5_moe", .rope_theta = 500000, .norm_epsilon = 1e-5f}};

}  // namespace

constinit const Family family{
    .architecture = "ernie4_5-moe",
    .titles = {.with_experts = "ERNIE 4.5"},
    .describe = describe,
    .traits = {.experts = true, .interleaves = true},
    .written = {.expert_step = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::ernie4_5_moe
