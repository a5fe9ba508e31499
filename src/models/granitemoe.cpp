// Granite 3's models with experts (2024).
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::granitemoe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = granite::describe(config);
  give_experts(arch, config, Scoring::chosen, false);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "granitemoe",
            .experts = HfExperts{.n = "num_local_experts",
                                 .usual_n = 8,
                                 .usual_n_chosen = 2,
                                 .dim = "intermediate_size"},
            .own_keys = kMultipliers},
    HfModel{.model_type = "granitemoeshared",
            .names = &hf::kSharedMlpNames,
            .experts = HfExperts{.n = "num_local_experts",
                                 .usual_n = 8,
                                 .usual_n_chosen = 2,
                                 .dim = "intermediate_size",
                                 .shared_dim = "shared_intermediate_size"},
            .own_keys = kMultipliers}};

}  // namespace

constinit const Family family{
    .architecture = "granitemoe",
    .titles = {.with_experts = "Granite 3"},
    .describe = describe,
    .traits = {.attention_scale = true,
               .multipliers = true,
               .logit_scale = true,
               .may_not_rotate = true,
               .experts = true},
    .written = {.attention_scale = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::granitemoe
