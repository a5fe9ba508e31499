// What a config.json says of a mixture of experts: each family has its own words for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/model_config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// Its keys, empty for those that a model_type has not, and what transformers takes where a file leaves them out.
struct HfExperts {
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

// Whether a key of experts is read for it.
bool is_expert_key(const HfExperts& experts, std::string_view key);

// Reads them into `model.experts`. Throws what ConfigObject throws, and UnsupportedModelError for layers without
// experts in between.
void read_hf_experts(ConfigObject& config, const HfExperts& keys, std::string_view model_type,
                     ModelConfig& model);
// A number, or a list that has it for every layer.
std::optional<uint32_t> count_of_layers(ConfigObject& config, std::string_view key);

}  // namespace akunu
