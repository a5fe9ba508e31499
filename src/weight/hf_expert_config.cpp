#include "weight/hf_expert_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "weight/json.h"

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
  std::string_view normalised = "norm_topk_prob";
  bool normalises = true;               // where there is no such key
  std::optional<Scoring> scoring = {};  // nothing: that of the architecture
  bool has_groups = false;
  std::string_view n_groups = "n_group";
  uint32_t usual_groups = 1;
  uint32_t usual_groups_chosen = 1;
  float usual_scale = 1;
  bool names_method = false;      // `topk_method`: "greedy" looks at no groups
  bool has_layers_ahead = false;  // `num_nextn_predict_layers`
  bool may_have_none = false;     // a number of 0 says so
  bool names_layers = false;      // `mlp_layer_types` says which layers have experts
};

constexpr ExpertKeys deepseek3_keys(std::string_view model_type) {
  return {.model_type = model_type,
          .n = "n_routed_experts",
          .usual_n = 256,
          .usual_n_chosen = 8,
          .usual_dim = 2048,
          .n_shared = "n_shared_experts",
          .usual_n_shared = 1,
          .n_leading_dense = "first_k_dense_replace",
          .usual_leading_dense = 3,
          .scoring = Scoring::sigmoid,
          .has_groups = true,
          .usual_groups = 8,
          .usual_groups_chosen = 4,
          .usual_scale = 2.5f,
          .has_layers_ahead = true};
}

constexpr ExpertKeys glm4_keys(std::string_view model_type) {
  return {.model_type = model_type,
          .n = "n_routed_experts",
          .usual_n = 128,
          .usual_n_chosen = 8,
          .usual_dim = 1408,
          .n_shared = "n_shared_experts",
          .usual_n_shared = 1,
          .n_leading_dense = "first_k_dense_replace",
          .usual_leading_dense = 1,
          .has_groups = true,
          .has_layers_ahead = true};
}

constexpr std::array kExpertKeys{
    ExpertKeys{.model_type = "qwen3_moe",
               .usual_n = 128,
               .usual_n_chosen = 8,
               .usual_dim = 768,
               .normalises = false},
    ExpertKeys{
        .model_type = "qwen3_vl_moe_text", .usual_n = 60, .usual_n_chosen = 4, .usual_dim = 1408},
    ExpertKeys{.model_type = "qwen2_moe",
               .usual_n = 60,
               .usual_n_chosen = 4,
               .usual_dim = 1408,
               .shared_dim = "shared_expert_intermediate_size",
               .usual_shared_dim = 5632,
               .normalises = false},
    ExpertKeys{.model_type = "qwen3_5_moe_text",
               .usual_n = 256,
               .usual_n_chosen = 8,
               .usual_dim = 512,
               .shared_dim = "shared_expert_intermediate_size",
               .usual_shared_dim = 512},
    ExpertKeys{.model_type = "qwen3_next",
               .usual_n = 512,
               .usual_n_chosen = 10,
               .usual_dim = 512,
               .shared_dim = "shared_expert_intermediate_size",
               .usual_shared_dim = 512},
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
    glm4_keys("glm4_moe"),
    glm4_keys("glm4v_moe_text"),
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
    ExpertKeys{.model_type = "granitemoeshared",
               .n = "num_local_experts",
               .usual_n = 8,
               .usual_n_chosen = 2,
               .dim = "intermediate_size",
               .shared_dim = "shared_intermediate_size"},
    ExpertKeys{.model_type = "granitemoehybrid",
               .n = "num_local_experts",
               .usual_n = 8,
               .usual_n_chosen = 2,
               .dim = "intermediate_size",
               .usual_dim = 11008,
               .shared_dim = "shared_intermediate_size",
               .usual_shared_dim = 1024,
               .may_have_none = true},
    ExpertKeys{.model_type = "hunyuan_v1_moe",
               .usual_n = 1,
               .n_chosen = "moe_topk",
               .usual_n_chosen = 1,
               .dim = "intermediate_size",
               .shared_dim = "intermediate_size"},
    ExpertKeys{.model_type = "deepseek_v2",
               .n = "n_routed_experts",
               .usual_n = 64,
               .usual_dim = 1407,
               .n_shared = "n_shared_experts",
               .usual_n_shared = 2,
               .n_leading_dense = "first_k_dense_replace",
               .normalises = false,
               .scoring = Scoring::softmax,
               .has_groups = true,
               .names_method = true},
    deepseek3_keys("deepseek_v3"),
    deepseek3_keys("kimi_k2"),
    ExpertKeys{.model_type = "kimi_linear",
               .usual_n = 256,
               .n_chosen = "num_experts_per_token",
               .usual_n_chosen = 8,
               .usual_dim = 1024,
               .n_shared = "num_shared_experts",
               .usual_n_shared = 1,
               .n_leading_dense = "first_k_dense_replace",
               .usual_leading_dense = 1,
               .normalised = "moe_renormalize",
               .scoring = Scoring::sigmoid,
               .has_groups = true,
               .n_groups = "num_expert_group",
               .usual_scale = 2.446f,
               .has_layers_ahead = true,
               .names_layers = true},
};

const ExpertKeys* find_keys(std::string_view model_type) {
  const auto found = std::ranges::find(kExpertKeys, model_type, &ExpertKeys::model_type);
  return found == kExpertKeys.end() ? nullptr : &*found;
}

// Layers without experts among those that have some are of no model that is known.
void refuse_gaps(ConfigObject& config, const ModelConfig& model) {
  constexpr const char* kWhy = "akunu has experts in every layer behind the first few";
  for (const char* period : {"decoder_sparse_step", "moe_layer_interval", "moe_layer_freq"})
    if (config.needed_count(period, 1) != 1) config.refuse_support(period, kWhy);
  if (const std::optional<std::vector<float>> dense = config.numbers("mlp_only_layers");
      dense && !dense->empty())
    config.refuse_support("mlp_only_layers", kWhy);
  if (const std::optional<float> last = config.number("moe_layer_end_index");
      last && *last >= 0 && *last + 1 < static_cast<float>(model.layers.size()))
    config.refuse_support("moe_layer_end_index", kWhy);
}

// `mlp_layer_types`: "dense" of the first layers, "sparse" of all behind them.
void read_dense_layers(ConfigObject& config, ModelConfig& model) {
  constexpr std::string_view kKey = "mlp_layer_types";
  const JsonValue* const types = config.find(kKey);
  if (types == nullptr || types->kind != JsonValue::Kind::array) return;
  if (types->items.size() != model.layers.size())
    config.refuse_value(kKey, "there are " + std::to_string(model.layers.size()) + " layers");
  const auto is_dense = [](const JsonValue& type) { return type.text == "dense"; };
  const auto first = std::ranges::find_if_not(types->items, is_dense);
  if (!std::all_of(first, types->items.end(),
                   [](const JsonValue& type) { return type.text == "sparse"; }))
    config.refuse_support(kKey, R"(akunu has "dense" layers first, and "sparse" ones behind)");
  model.experts.n_leading_dense = static_cast<uint32_t>(first - types->items.begin());
}

// A number, or a list that has it for every layer.
std::optional<uint32_t> count_of_layers(ConfigObject& config, std::string_view key) {
  const JsonValue* const value = config.find(key);
  if (value == nullptr || value->kind != JsonValue::Kind::array) return config.count(key);
  std::optional<uint32_t> all;
  for (const JsonValue& item : value->items) {
    const std::optional<uint64_t> number = item.unsigned_integer();
    if (!number || *number > std::numeric_limits<int32_t>::max())
      config.refuse_value(key, "whole numbers are needed");
    if (all && *all != *number)
      config.refuse_support(key, "akunu needs the same number in every layer");
    all = static_cast<uint32_t>(*number);
  }
  return all;
}

// Whether any layer has experts. A file whose layers are all dense may have their numbers all the same.
bool has_experts(ConfigObject& config, const ExpertKeys& keys, const ModelConfig& model) {
  if (!keys.scoring && !keys.may_have_none) return true;
  const JsonValue* const n = config.find(keys.n);
  return model.experts.n_leading_dense < model.layers.size() && !config.has_null(keys.n) &&
         (n == nullptr || n->number() != 0.0);
}

void find_unread(ConfigObject& config, const ExpertKeys& keys) {
  for (const std::string_view key :
       {keys.n, keys.n_chosen, keys.dim, keys.n_shared, keys.n_groups, keys.normalised,
        std::string_view("topk_group"), std::string_view("topk_method"),
        std::string_view("scoring_func"), std::string_view("moe_router_activation_func"),
        std::string_view("use_grouped_topk"), std::string_view("routed_scaling_factor"),
        std::string_view("moe_layer_freq")})
    config.find(key);
}

// DeepSeek's words for how experts are chosen: what the file says must be what transformers computes.
void read_method(ConfigObject& config, const ExpertKeys& keys, ExpertConfig& experts) {
  const bool is_sigmoid = experts.scoring == Scoring::sigmoid;
  const std::string_view scored = is_sigmoid ? "sigmoid" : "softmax";
  for (const char* const key : {"scoring_func", "moe_router_activation_func"})
    if (const auto said = config.text(key); said && *said != scored)
      config.refuse_support(
          key, "akunu has \"" + std::string(scored) + "\" for " + std::string(keys.model_type));
  if (!config.flag("use_grouped_topk").value_or(true) && experts.n_groups > 1)
    config.refuse_support("use_grouped_topk", "akunu has groups where there are several");
  const std::string method =
      config.text("topk_method").value_or(keys.names_method ? "greedy" : "noaux_tc");
  if (!keys.names_method) {
    if (method != "noaux_tc") config.refuse_support("topk_method", R"(akunu has "noaux_tc")");
    return;
  }
  if (experts.normalised.value_or(false))
    config.refuse_support("norm_topk_prob",
                          "DeepSeek's code and transformers differ on what that does");
  if (method == "greedy")
    experts.n_groups = experts.n_groups_chosen = 1;
  else if (method != "group_limited_greedy")
    config.refuse_support("topk_method", R"(akunu has "greedy" and "group_limited_greedy")");
}

// What Hunyuan's files say besides, as transformers has it.
void check_hunyuan(ConfigObject& config, const ExpertConfig& experts) {
  if (count_of_layers(config, "num_shared_expert").value_or(1) != 1)
    config.refuse_support("num_shared_expert", "akunu has 1");
  if (count_of_layers(config, "moe_intermediate_size").value_or(experts.dim) != experts.dim)
    config.refuse_support("moe_intermediate_size", "akunu needs what intermediate_size is");
  if (config.count("moe_layer_num_skipped").value_or(0) != 0)
    config.refuse_support("moe_layer_num_skipped", "akunu has 0");
  if (!config.flag("use_mixed_mlp_moe").value_or(true))
    config.refuse_support("use_mixed_mlp_moe", "akunu has true");
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
  if (keys->has_layers_ahead)
    experts.n_layers_ahead = config.count("num_nextn_predict_layers").value_or(0);
  if (!keys->n_leading_dense.empty())
    experts.n_leading_dense =
        config.has_null(keys->n_leading_dense)
            ? 0
            : config.count(keys->n_leading_dense).value_or(keys->usual_leading_dense);
  if (keys->names_layers) read_dense_layers(config, model);
  if (!has_experts(config, *keys, model)) return find_unread(config, *keys);
  // transformers 5 may write one name for all families.
  const auto count = [&](std::string_view key, std::string_view other, uint32_t usual) {
    const std::optional<uint32_t> said = config.count(other);
    if (said && config.find(key) == nullptr) return *said;
    const std::optional<uint32_t> own = count_of_layers(config, key);
    return own.value_or(0) != 0 ? *own : config.needed_count(key, usual);
  };
  experts.n = count(keys->n, "num_local_experts", keys->usual_n);
  experts.n_chosen = count(keys->n_chosen, "num_experts_per_tok", keys->usual_n_chosen);
  experts.dim = config.needed_count(keys->dim, keys->usual_dim);
  experts.normalised = config.flag(keys->normalised).value_or(keys->normalises);
  if (!keys->shared_dim.empty())
    experts.shared_dim = config.count(keys->shared_dim).value_or(keys->usual_shared_dim);
  if (!keys->n_shared.empty())
    experts.shared_dim =
        config.has_null(keys->n_shared)
            ? 0
            : config.count(keys->n_shared).value_or(keys->usual_n_shared) * experts.dim;
  experts.scoring = keys->scoring;
  if (keys->has_groups) {
    experts.n_groups = config.needed_count(keys->n_groups, keys->usual_groups);
    experts.n_groups_chosen = config.needed_count("topk_group", keys->usual_groups_chosen);
    experts.scale = config.number("routed_scaling_factor").value_or(keys->usual_scale);
  }
  if (keys->scoring) read_method(config, *keys, experts);
  if (model_type == "hunyuan_v1_moe") check_hunyuan(config, experts);
  experts.limit = config.number("swiglu_limit").value_or(0.0f);
  experts.alpha = config.number("swiglu_alpha").value_or(0.0f);
  refuse_gaps(config, model);
}

}  // namespace akunu
