// OLMoE (2024): one norm over all heads of Q, and one of K; the chosen experts' weights are not normalised.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::olmoe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  give_head_norms(arch, HeadNorms::all);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{
    .model_type = "olmoe",
    .norm_epsilon = 1e-5f,
    .experts = HfExperts{
        .usual_n = 64, .usual_n_chosen = 8, .dim = "intermediate_size", .normalises = false}}};

}  // namespace

constinit const Family family{
    .architecture = "olmoe",
    .titles = {.with_experts = "OLMoE"},
    .describe = describe,
    .traits = {.experts = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::olmoe
