#include "files/huggingface/expert_config.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "files/json.h"

namespace akunu {

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

namespace {

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

// Whether any layer has experts. A file whose layers are all dense may have their numbers all the same.
bool has_experts(ConfigObject& config, const HfExperts& keys, const ModelConfig& model) {
  if (!keys.scoring && !keys.may_have_none) return true;
  const JsonValue* const n = config.find(keys.n);
  return model.experts.n_leading_dense < model.layers.size() && !config.has_null(keys.n) &&
         (n == nullptr || n->number() != 0.0);
}

void find_unread(ConfigObject& config, const HfExperts& keys) {
  for (const std::string_view key :
       {keys.n, keys.n_chosen, keys.dim, keys.n_shared, keys.n_groups, keys.normalised,
        std::string_view("topk_group"), std::string_view("topk_method"),
        std::string_view("scoring_func"), std::string_view("moe_router_activation_func"),
        std::string_view("use_grouped_topk"), std::string_view("routed_scaling_factor"),
        std::string_view("moe_layer_freq")})
    config.find(key);
}

// DeepSeek's words for how experts are chosen: what the file says must be what transformers computes.
void read_method(ConfigObject& config, const HfExperts& keys, std::string_view model_type,
                 ExpertConfig& experts) {
  const bool is_sigmoid = experts.scoring == Scoring::sigmoid;
  const std::string_view scored = is_sigmoid ? "sigmoid" : "softmax";
  for (const char* const key : {"scoring_func", "moe_router_activation_func"})
    if (const auto said = config.text(key); said && *said != scored)
      config.refuse_support(
          key, "akunu has \"" + std::string(scored) + "\" for " + std::string(model_type));
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

}  // namespace

bool is_expert_key(const HfExperts& experts, std::string_view key) {
  return (experts.has_layers_ahead && key == "num_nextn_predict_layers") || key == experts.n ||
         key == "num_local_experts" || key == "num_experts";
}

void read_hf_experts(ConfigObject& config, const HfExperts& keys, std::string_view model_type,
                     ModelConfig& model) {
  ExpertConfig& experts = model.experts;
  if (keys.has_layers_ahead)
    experts.n_layers_ahead = config.count("num_nextn_predict_layers").value_or(0);
  if (!keys.n_leading_dense.empty())
    experts.n_leading_dense =
        config.has_null(keys.n_leading_dense)
            ? 0
            : config.count(keys.n_leading_dense).value_or(keys.usual_leading_dense);
  if (keys.names_layers) read_dense_layers(config, model);
  if (!has_experts(config, keys, model)) return find_unread(config, keys);
  // transformers 5 may write one name for all families.
  const auto count = [&](std::string_view key, std::string_view other, uint32_t usual) {
    const std::optional<uint32_t> said = config.count(other);
    if (said && config.find(key) == nullptr) return *said;
    const std::optional<uint32_t> own = count_of_layers(config, key);
    return own.value_or(0) != 0 ? *own : config.needed_count(key, usual);
  };
  experts.n = count(keys.n, "num_local_experts", keys.usual_n);
  experts.n_chosen = count(keys.n_chosen, "num_experts_per_tok", keys.usual_n_chosen);
  experts.dim = config.needed_count(keys.dim, keys.usual_dim);
  experts.normalised = config.flag(keys.normalised).value_or(keys.normalises);
  if (!keys.shared_dim.empty())
    experts.shared_dim = config.count(keys.shared_dim).value_or(keys.usual_shared_dim);
  if (!keys.n_shared.empty())
    experts.shared_dim =
        config.has_null(keys.n_shared)
            ? 0
            : config.count(keys.n_shared).value_or(keys.usual_n_shared) * experts.dim;
  experts.scoring = keys.scoring;
  if (keys.has_groups) {
    experts.n_groups = config.needed_count(keys.n_groups, keys.usual_groups);
    experts.n_groups_chosen = config.needed_count("topk_group", keys.usual_groups_chosen);
    experts.scale = config.number("routed_scaling_factor").value_or(keys.usual_scale);
  }
  if (keys.scoring) read_method(config, keys, model_type, experts);
  experts.limit = config.number("swiglu_limit").value_or(0.0f);
  experts.alpha = config.number("swiglu_alpha").value_or(0.0f);
  refuse_gaps(config, model);
}

}  // namespace akunu
