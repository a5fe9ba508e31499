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
    HfModel{.model_type = "ernie4_5_moe",
            .rope_theta = 500000,
            .norm_epsilon = 1e-5f,
            .experts = HfExperts{.n = "moe_num_experts",
                                 .usual_n = 64,
                                 .n_chosen = "moe_k",
                                 .usual_n_chosen = 6,
                                 .usual_dim = 1536,
                                 .n_shared = "moe_num_shared_experts",
                                 .usual_n_shared = 2,
                                 .n_leading_dense = "moe_layer_start_index",
                                 .usual_leading_dense = 1}}};

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
