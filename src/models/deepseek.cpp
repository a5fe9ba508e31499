// DeepSeek-MoE (2024): llama with experts, and some more for all rows.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::deepseek {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

constinit const Family family{
    .architecture = "deepseek",
    .titles = {.with_experts = "DeepSeek-MoE"},
    .describe = describe,
    .traits = {.experts = true},
    .written = {.always_with_experts = true},
};

}  // namespace akunu::models::deepseek
