// Decoders whose feed-forward networks are experts. families.h says what a family is.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/families/families.h"

namespace akunu::families {

// Every layer, or those behind the first few, has experts. The arguments: what holds where the file says
// nothing.
void give_experts(ArchDescriptor& arch, const ModelConfig& config, Scoring scoring,
                  bool normalised) {
  const ExpertConfig& from = config.experts;
  if (from.n == 0) return;
  const Scoring scored = from.scoring.value_or(scoring);
  for (size_t i = from.n_leading_dense; i < arch.layers.size(); ++i)
    arch.layers[i].experts =
        Experts{.n = from.n,
                .n_chosen = from.n_chosen,
                .dim = from.dim != 0 ? from.dim : config.layers[i].ffn_dim,
                .shared_dim = from.shared_dim,
                .scoring = scored,
                .normalised = from.normalised.value_or(normalised),
                .scale = from.scale != 0 ? from.scale : 1,
                .n_groups = std::max(from.n_groups, 1u),
                .n_groups_chosen = std::max(from.n_groups_chosen, 1u),
                .group_best = from.n_groups > 1 && scored == Scoring::sigmoid ? 2u : 1u};
}

// Multi-head latent attention. Its scale is that of a head before its keys are compressed, times what YaRN adds.
void give_latents(ArchDescriptor& arch, const ModelConfig& config) {
  require(config.latent_rank, "rank of keys and values", config);
  require(config.value_dim, "length of a value", config);
  give_attention_scale(arch, config, 0);
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    LayerDescriptor& layer = arch.layers[i];
    if (config.layers[i].recurs) continue;
    layer.latent =
        Latent{.rank = config.latent_rank,
               .query_rank = config.query_rank,
               .value_dim = config.value_dim,
               .norm_epsilon = config.latent_norm_epsilon != 0 ? config.latent_norm_epsilon
                                                               : config.norm_epsilon};
    layer.rotated_factor = config.rope_attention_factor;
    if (layer.rope_dim >= layer.head_dim)
      throw ModelFormatError("all " + std::to_string(layer.head_dim) +
                             " numbers of a head rotate; latent attention has some that do not");
  }
}

// DeepSeek-V2 (2024), V3 and what has their shape: latent attention in llama's frame.
ArchDescriptor deepseek2(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_latents(arch, config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

// MiniCPM3 (OpenBMB, 2024): the same with Granite's factors, which its GGUF files do not say; dimension i
// of what rotates turns with i + half.
ArchDescriptor minicpm3(const ModelConfig& config) {
  ArchDescriptor arch = deepseek2(config);
  arch.row_style = RopeStyle::halves;
  for (LayerDescriptor& layer : arch.layers) layer.rope_style = RopeStyle::halves;
  const auto or_usual = [](float said, float usual) { return said != 0 ? said : usual; };
  arch.embedding_scale = or_usual(config.embedding_scale, 12);
  arch.residual_scale =
      or_usual(config.residual_scale, 1.4f / std::sqrt(static_cast<float>(config.layers.size())));
  arch.logit_scale = 1 / or_usual(config.logit_scale, static_cast<float>(config.dim) / 256);
  return arch;
}

// Qwen3-MoE (2025): qwen3 with experts, whose weights are normalised.
ArchDescriptor qwen3_moe(const ModelConfig& config) {
  ArchDescriptor arch = qwen3(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// Qwen2-MoE (2024): qwen2 with experts, and one more for all rows, with a router of its own.
ArchDescriptor qwen2_moe(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

// llama's files may have experts: Mixtral (2024).
ArchDescriptor llama_or_mixtral(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// OLMoE (2024): one norm over all heads of Q, and one of K; the chosen experts' weights are not normalised.
ArchDescriptor olmoe(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  for (LayerDescriptor& layer : arch.layers) layer.head_norms = layer.norms_all_heads = true;
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

// Granite 3's models with experts (2024).
ArchDescriptor granite_moe(const ModelConfig& config) {
  ArchDescriptor arch = granite(config);
  give_experts(arch, config, Scoring::chosen, false);
  return arch;
}

// GLM-4.5 (2025): scores by a sigmoid, a bias that says who is chosen, an expert for all rows.
ArchDescriptor glm4_moe(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  give_experts(arch, config, Scoring::sigmoid, true);
  return arch;
}

// ERNIE 4.5 (2025): llama with a bias that says who is chosen, and experts for all rows.
ArchDescriptor ernie4_5_moe(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// Hunyuan-A13B (2025): the dense model with experts, and one more for all rows.
ArchDescriptor hunyuan_moe(const ModelConfig& config) {
  ArchDescriptor arch = hunyuan_dense(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// DeepSeek-MoE (2024): llama with experts, and some more for all rows.
ArchDescriptor deepseek(const ModelConfig& config) {
  ArchDescriptor arch = llama(config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

// gpt-oss (2025): windows in every second layer, a sink for each head, experts with biases whose
// activation is clamped.
ArchDescriptor gpt_oss(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  give_windows(arch, config, 2, 128);
  give_experts(arch, config, Scoring::chosen, false);
  for (LayerDescriptor& layer : arch.layers) {
    if (!layer.experts) continue;
    layer.experts->limit = config.experts.limit != 0 ? config.experts.limit : 7.0f;
    layer.experts->alpha = config.experts.alpha != 0 ? config.experts.alpha : 1.702f;
    require_positive(layer.experts->limit, "limit of the experts' activation");
    require_positive(layer.experts->alpha, "alpha of the experts' activation");
  }
  return arch;
}

}  // namespace akunu::families
