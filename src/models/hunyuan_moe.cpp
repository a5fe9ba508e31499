// Hunyuan-A13B (2025): the dense model with experts, and one more for all rows.
#include "files/huggingface/config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::hunyuan_moe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = hunyuan_dense::describe(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

namespace {

// What files say besides, as transformers has it.
void check(ConfigObject& config, HfConfig& result) {
  const ExpertConfig& experts = result.model.experts;
  if (count_of_layers(config, "num_shared_expert").value_or(1) != 1)
    config.refuse_support("num_shared_expert", "akunu has 1");
  if (count_of_layers(config, "moe_intermediate_size").value_or(experts.dim) != experts.dim)
    config.refuse_support("moe_intermediate_size", "akunu needs what intermediate_size is");
  if (config.count("moe_layer_num_skipped").value_or(0) != 0)
    config.refuse_support("moe_layer_num_skipped", "akunu has 0");
  if (!config.flag("use_mixed_mlp_moe").value_or(true))
    config.refuse_support("use_mixed_mlp_moe", "akunu has true");
}

constexpr std::string_view kOwnKeys[]{"use_qk_norm"};
constexpr std::array kDirectories{HfModel{.model_type = "hunyuan_v1_moe",
                                          .norm_epsilon = 1e-5f,
                                          .has_alpha = true,
                                          .experts = HfExperts{.usual_n = 1,
                                                               .n_chosen = "moe_topk",
                                                               .usual_n_chosen = 1,
                                                               .dim = "intermediate_size",
                                                               .shared_dim = "intermediate_size"},
                                          .read_layers = check,
                                          .own_keys = kOwnKeys}};

constexpr PreTokenizerName kPreTokenizers[]{{"hunyuan", &cuts::kQwen2}};

constexpr std::array kThinking{ThinkingMarks{.signs = {"<think>", "<answer>"},
                                             .opening = "<think>",
                                             .closing = "</think>",
                                             .answer_openings = {"<answer>"},
                                             .answer_closings = {"</answer>"}}};

}  // namespace

constinit const Family family{
    .architecture = "hunyuan-moe",
    .titles = {.with_experts = "Hunyuan"},
    .describe = describe,
    .traits = {.experts = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
    .thinking = kThinking,
};

}  // namespace akunu::models::hunyuan_moe
