// GLM-4.5 (2025): scores by a sigmoid, a bias that says who is chosen, an expert for all rows.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::glm4moe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  give_experts(arch, config, Scoring::sigmoid, true);
  return arch;
}

namespace {

constexpr HfExperts kExperts{.n = "n_routed_experts",
                             .usual_n = 128,
                             .usual_n_chosen = 8,
                             .usual_dim = 1408,
                             .n_shared = "n_shared_experts",
                             .usual_n_shared = 1,
                             .n_leading_dense = "first_k_dense_replace",
                             .usual_leading_dense = 1,
                             .has_groups = true,
                             .has_layers_ahead = true};
constexpr std::string_view kOwnKeys[]{"use_qk_norm"};
constexpr std::array kDirectories{HfModel{.model_type = "glm4_moe",
                                          .rotating_part = 0.5f,
                                          .norm_epsilon = 1e-5f,
                                          .experts = kExperts,
                                          .own_keys = kOwnKeys},
                                  HfModel{.model_type = "glm4v_moe_text",
                                          .rotating_part = 0.5f,
                                          .norm_epsilon = 1e-5f,
                                          .experts = kExperts}};
constexpr std::array kWithImages{ImageModel{"glm4v_moe", "glm4v_moe_text"}};

}  // namespace

constinit const Family family{
    .architecture = "glm4moe",
    .titles = {.with_experts = "GLM-4.5"},
    .describe = describe,
    .traits = {.experts = true},
    .gguf_names = &gguf::kSeedNames,
    .directories = kDirectories,
    .with_images = kWithImages,
};

}  // namespace akunu::models::glm4moe
