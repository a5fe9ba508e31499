#include "weight/hf_expert_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace akunu {
namespace {

// A family's keys, empty for those that it has not, and what transformers takes where a file leaves
// them out.
struct ExpertKeys {
  std::string_view model_type;
  std::string_view n = "num_experts";
  uint32_t usual_n = 0;
  std::string_view n_chosen = "num_experts_per_tok";
  uint32_t usual_n_chosen = 0;
  std::string_view dim = "moe_intermediate_size";
  uint32_t usual_dim = 0;
  // Of what all rows go through: its length, or how many experts it is as long as.
  std::string_view shared_dim = {};
  uint32_t usual_shared_dim = 0;
  std::string_view n_shared = {};
  uint32_t usual_n_shared = 0;
  std::string_view n_leading_dense = {};
  uint32_t usual_leading_dense = 0;
  bool normalises = true;  // where there is no `norm_topk_prob`
  bool has_groups = false;
  bool has_layers_ahead = false;  // `num_nextn_predict_layers`
};

constexpr std::array kExpertKeys{
    ExpertKeys{.model_type = "qwen3_moe",
               .usual_n = 128,
               .usual_n_chosen = 8,
               .usual_dim = 768,
               .normalises = false},
    ExpertKeys{.model_type = "qwen2_moe",
               .usual_n = 60,
               .usual_n_chosen = 4,
               .usual_dim = 1408,
               .shared_dim = "shared_expert_intermediate_size",
               .usual_shared_dim = 5632,
               .normalises = false},
    ExpertKeys{.model_type = "mixtral",
               .n = "num_local_experts",
               .usual_n = 8,
               .usual_n_chosen = 2,
               .dim = "intermediate_size"},
    ExpertKeys{.model_type = "olmoe",
               .usual_n = 64,
               .usual_n_chosen = 8,
               .dim = "intermediate_size",
               .normalises = false},
    ExpertKeys{.model_type = "granitemoe",
               .n = "num_local_experts",
               .usual_n = 8,
               .usual_n_chosen = 2,
               .dim = "intermediate_size"},
    ExpertKeys{.model_type = "gpt_oss",
               .n = "num_local_experts",
               .usual_n = 128,
               .usual_n_chosen = 4,
               .dim = "intermediate_size"},
    ExpertKeys{.model_type = "glm4_moe",
               .n = "n_routed_experts",
               .usual_n = 128,
               .usual_n_chosen = 8,
               .usual_dim = 1408,
               .n_shared = "n_shared_experts",
               .usual_n_shared = 1,
               .n_leading_dense = "first_k_dense_replace",
               .usual_leading_dense = 1,
               .has_groups = true,
               .has_layers_ahead = true},
    ExpertKeys{.model_type = "ernie4_5_moe",
               .n = "moe_num_experts",
               .usual_n = 64,
               .n_chosen = "moe_k",
               .usual_n_chosen = 6,
               .usual_dim = 1536,
               .n_shared = "moe_num_shared_experts",
               .usual_n_shared = 2,
               .n_leading_dense = "moe_layer_start_index",
               .usual_leading_dense = 1},
};

const ExpertKeys* find_keys(std::string_view model_type) {
  const auto found = std::ranges::find(kExpertKeys, model_type, &ExpertKeys::model_type);
  return found == kExpertKeys.end() ? nullptr : &*found;
}

// Layers without experts among those that have some are of no model that is known.
void refuse_gaps(ConfigObject& config, const ModelConfig& model) {
  constexpr const char* kWhy = "akunu has experts in every layer behind the first few";
  for (const char* period : {"decoder_sparse_step", "moe_layer_interval"})
    if (config.needed_count(period, 1) != 1) config.refuse_support(period, kWhy);
  if (const std::optional<std::vector<float>> dense = config.numbers("mlp_only_layers");
      dense && !dense->empty())
    config.refuse_support("mlp_only_layers", kWhy);
  if (const std::optional<float> last = config.number("moe_layer_end_index");
      last && *last >= 0 && *last + 1 < static_cast<float>(model.layers.size()))
    config.refuse_support("moe_layer_end_index", kWhy);
}

}  // namespace

bool is_expert_key(std::string_view model_type, std::string_view key) {
  const ExpertKeys* const keys = find_keys(model_type);
  if (keys != nullptr && keys->has_layers_ahead && key == "num_nextn_predict_layers") return true;
  return keys != nullptr && (key == keys->n || key == "num_local_experts" || key == "num_experts");
}

void read_hf_experts(ConfigObject& config, std::string_view model_type, ModelConfig& model) {
  const ExpertKeys* const keys = find_keys(model_type);
  if (keys == nullptr) return;
  ExpertConfig& experts = model.experts;
  // transformers 5 may write one name for all families.
  const auto count = [&](std::string_view key, std::string_view other, uint32_t usual) {
    const std::optional<uint32_t> said = config.count(other);
    return said && config.find(key) == nullptr ? *said : config.needed_count(key, usual);
  };
  experts.n = count(keys->n, "num_local_experts", keys->usual_n);
  experts.n_chosen = count(keys->n_chosen, "num_experts_per_tok", keys->usual_n_chosen);
  experts.dim = config.needed_count(keys->dim, keys->usual_dim);
  experts.normalised = config.flag("norm_topk_prob").value_or(keys->normalises);
  if (!keys->shared_dim.empty())
    experts.shared_dim = config.needed_count(keys->shared_dim, keys->usual_shared_dim);
  if (!keys->n_shared.empty())
    experts.shared_dim = config.count(keys->n_shared).value_or(keys->usual_n_shared) * experts.dim;
  if (!keys->n_leading_dense.empty())
    experts.n_leading_dense =
        config.count(keys->n_leading_dense).value_or(keys->usual_leading_dense);
  if (keys->has_groups) {
    experts.n_groups = config.needed_count("n_group", 1);
    experts.n_groups_chosen = config.needed_count("topk_group", 1);
    experts.scale = config.number("routed_scaling_factor").value_or(1.0f);
  }
  experts.limit = config.number("swiglu_limit").value_or(0.0f);
  experts.alpha = config.number("swiglu_alpha").value_or(0.0f);
  if (keys->has_layers_ahead)
    experts.n_layers_ahead = config.count("num_nextn_predict_layers").value_or(0);
  refuse_gaps(config, model);
}

}  // namespace akunu
