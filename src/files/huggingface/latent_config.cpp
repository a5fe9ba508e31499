#include "files/huggingface/latent_config.h"

namespace akunu {

uint32_t read_hf_latents(ConfigObject& config, const HfLatents& usual, uint32_t n_heads,
                         ModelConfig& model) {
  for (const char* key : {"head_dim", "qk_head_dim"}) config.find(key);  // they follow from others
  model.latent.rank = config.needed_count("kv_lora_rank", usual.rank);
  if (!config.has_null("q_lora_rank") &&
      (usual.query_rank != 0 || config.find("q_lora_rank") != nullptr))
    model.latent.query_rank = config.needed_count("q_lora_rank", usual.query_rank);
  model.latent.value_dim = config.needed_count(
      "v_head_dim", usual.value_dim != 0 ? usual.value_dim : model.dim / n_heads);
  model.rope.dim = config.needed_count("qk_rope_head_dim", usual.rotated_dim);
  // The norms of latents have transformers' own epsilon, whatever the model's is.
  model.latent.norm_epsilon = 1e-6f;
  const uint64_t head_dim =
      uint64_t{config.needed_count("qk_nope_head_dim", usual.plain_dim)} + model.rope.dim;
  constexpr uint64_t kMost = 1u << 16;
  if (head_dim > kMost) config.refuse_value("qk_nope_head_dim", "that is no length of a head");
  return static_cast<uint32_t>(head_dim);
}

}  // namespace akunu
