#include "weight/hf_latent_config.h"

#include "core/error.h"
#include "weight/json.h"

namespace akunu {

uint32_t read_hf_latents(ConfigObject& config, const HfLatents& usual, uint32_t n_heads,
                         ModelConfig& model) {
  for (const char* key : {"head_dim", "qk_head_dim"}) config.find(key);  // they follow from others
  model.latent_rank = config.needed_count("kv_lora_rank", usual.rank);
  if (!config.has_null("q_lora_rank"))
    model.query_rank = config.needed_count("q_lora_rank", usual.query_rank);
  model.value_dim = config.needed_count(
      "v_head_dim", usual.value_dim != 0 ? usual.value_dim : model.dim / n_heads);
  model.rope_dim = config.needed_count("qk_rope_head_dim", usual.rotated_dim);
  // The norms of latents have transformers' own epsilon, whatever the model's is.
  model.latent_norm_epsilon = 1e-6f;
  const uint64_t head_dim =
      uint64_t{config.needed_count("qk_nope_head_dim", usual.plain_dim)} + model.rope_dim;
  constexpr uint64_t kMost = 1u << 16;
  if (head_dim > kMost) config.refuse_value("qk_nope_head_dim", "that is no length of a head");
  return static_cast<uint32_t>(head_dim);
}

void read_hf_experts_of_latents(ConfigObject& config, const HfLatents& usual, uint32_t n_layers,
                                const std::string& model_type) {
  if (!usual.has_experts) return;
  const uint32_t n_dense = config.has_null("first_k_dense_replace")
                               ? 0
                               : config.count("first_k_dense_replace").value_or(usual.dense_layers);
  const JsonValue* const experts = config.find("n_routed_experts");
  const bool has_none =
      config.has_null("n_routed_experts") || (experts != nullptr && experts->number() == 0.0);
  if (n_dense < n_layers && !has_none)
    config.refuse_support(
        "first_k_dense_replace",
        "layers from it on have experts, which are not supported for " + model_type);
  for (const char* key :
       {"aux_loss_alpha", "ep_size", "moe_intermediate_size", "moe_layer_freq", "n_group",
        "n_shared_experts", "norm_topk_prob", "num_mtp_layers", "routed_scaling_factor",
        "scoring_func", "seq_aux", "topk_group", "topk_method"})
    config.find(key);
}

}  // namespace akunu
