#include "files/unknown_parts.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "files/huggingface/experts.h"
#include "files/huggingface/unread_keys.h"
#include "files/json.h"
#include "files/names.h"
#include "files/printable.h"
#include "models/registry.h"

namespace akunu {
namespace {

// Those that a GGUF file may have of any family, without the architecture before them. Sorted.
constexpr std::string_view kGgufKeys[] = {
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.key_length_mla",
    "attention.kv_lora_rank",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.q_lora_rank",
    "attention.scale",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.temperature_scale",
    "attention.value_length",
    "attention.value_length_mla",
    "attn_logit_softcapping",
    "block_count",
    "context_length",
    "embedding_length",
    "embedding_scale",
    "expert_count",
    "expert_feed_forward_length",
    "expert_gating_func",
    "expert_group_count",
    "expert_group_used_count",
    "expert_shared_count",
    "expert_shared_feed_forward_length",
    "expert_used_count",
    "expert_weights_norm",
    "expert_weights_scale",
    "feed_forward_length",
    "final_logit_softcapping",
    "leading_dense_block_count",
    "logit_scale",
    "nextn_predict_layers",
    "pooling_type",
    "residual_scale",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_log_multiplier",
    "shortconv.l_cache",
    "ssm.conv_kernel",
    "ssm.group_count",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
    "vocab_size",
};
static_assert(std::ranges::is_sorted(kGgufKeys));

// Those of a config.json that some family reads. Sorted.
constexpr std::string_view kHfKeys[] = {
    "attention_multiplier",
    "attn_logit_softcapping",
    "decoder_sparse_step",
    "embedding_multiplier",
    "final_logit_softcapping",
    "first_k_dense_replace",
    "head_dim",
    "hidden_act",
    "hidden_activation",
    "hidden_size",
    "intermediate_size",
    "kv_lora_rank",
    "layer_norm_eps",
    "layer_types",
    "logit_scale",
    "logits_scaling",
    "max_position_embeddings",
    "max_window_layers",
    "mlp_only_layers",
    "moe_intermediate_size",
    "moe_layer_freq",
    "n_group",
    "n_routed_experts",
    "n_shared_experts",
    "no_rope_layer_interval",
    "no_rope_layers",
    "norm_epsilon",
    "norm_topk_prob",
    "num_attention_heads",
    "num_experts",
    "num_key_value_heads",
    "num_local_experts",
    "num_nextn_predict_layers",
    "original_max_position_embeddings",
    "partial_rotary_factor",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "quantization",
    "quantization_config",
    "query_pre_attn_scalar",
    "residual_multiplier",
    "rms_norm_eps",
    "rope_local_base_freq",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "routed_scaling_factor",
    "scoring_func",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
    "sliding_window",
    "sliding_window_pattern",
    "tie_word_embeddings",
    "topk_group",
    "topk_method",
    "use_sliding_window",
    "v_head_dim",
    "vocab_size",
};
static_assert(std::ranges::is_sorted(kHfKeys));

// "blk.12.ssm_a" -> "blk.N.ssm_a"
std::string without_numbers(std::string_view name) {
  std::string result;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    const bool is_number = !part.empty() && std::ranges::all_of(part, [](unsigned char letter) {
      return std::isdigit(letter) != 0;
    });
    result += (result.empty() ? "" : ".") + (is_number ? "N" : std::string(part));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return result;
}

// "mlp.experts.7.up_proj.weight" as the stack's name that it becomes a part of.
std::string of_stack(std::string_view name) {
  std::string result = with_suffix(name);
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = result.find(kExperts);
  if (at == std::string::npos) return result;
  const size_t begin = at + kExperts.size();
  const size_t end = result.find_first_not_of("0123456789", begin);
  if (end != begin && end != std::string::npos && result[end] == '.')
    result.erase(begin, end + 1 - begin);
  return result;
}

// The name, or one without some of the parts before it: "model.layers.0.mlp.up_proj.weight".
bool is_known(const NameRules& rules, std::string_view name) {
  for (;; name.remove_prefix(name.find('.') + 1)) {
    if (is_named(rules, name)) return true;
    if (name.find('.') == std::string_view::npos) return false;
  }
}

void add_list(std::string& text, std::string_view what, const std::set<std::string>& names) {
  if (names.empty()) return;
  constexpr size_t kMost = 8;
  text += "; of its " + std::string(what) + " akunu does not know ";
  size_t n = 0;
  for (const std::string& name : names) {
    if (n++ == kMost) break;
    text += (n == 1 ? "" : ", ") + printable(name);
  }
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
}

}  // namespace

std::string unknown_parts(const GgufFile& file, std::string_view architecture) {
  std::set<std::string> tensors, keys;
  for (const GgufTensor& tensor : file.tensors())
    if (!is_known(gguf_names(architecture), tensor.name))
      tensors.insert(without_numbers(tensor.name));
  const std::string prefix = std::string(architecture) + ".";
  for (const GgufValue& value : file.values())
    if (value.key.starts_with(prefix) &&
        !std::ranges::binary_search(kGgufKeys, value.key.substr(prefix.size())))
      keys.insert(std::string(value.key));
  std::string text;
  add_list(text, "tensors", tensors);
  add_list(text, "keys", keys);
  return text;
}

std::string unknown_parts(const ModelDirectory& directory) {
  std::set<std::string> tensors, keys;
  const auto is_of_a_family = [](std::string_view name) {
    return std::ranges::any_of(families(), [&](const Family* family) {
      return std::ranges::any_of(family->directories, [&](const HfModel& model) {
        return model.names->embedding == hf::kUsualNames.embedding &&
               is_known(*model.names->rules, name);
      });
    });
  };
  for (const SafetensorsFile& file : directory.files())
    for (const SafetensorsTensor& tensor : file.tensors()) {
      const std::string name = of_stack(tensor.name);
      if (!is_of_a_family(name)) tensors.insert(without_numbers(tensor.name));
    }
  const auto add_keys = [&](const JsonValue& config, const std::string& prefix) {
    for (const std::string& key : config.keys)
      if (!has_no_effect(key) && !std::ranges::binary_search(kHfKeys, std::string_view(key)))
        keys.insert(prefix + key);
  };
  add_keys(directory.config(), "");
  // Of a model with images.
  constexpr const char* kOfText = "text_config";
  if (const JsonValue* text = directory.config().find(kOfText);
      text != nullptr && text->kind == JsonValue::Kind::object) {
    keys.erase(kOfText);
    add_keys(*text, std::string(kOfText) + ".");
  }
  std::string text;
  add_list(text, "tensors", tensors);
  add_list(text, "keys", keys);
  return text;
}

}  // namespace akunu
