#include <algorithm>
#include <string>

#include "core/error.h"
#include "models/common/layers.h"

namespace akunu::models {

void give_experts(ArchDescriptor& arch, const ModelConfig& config, Scoring scoring,
                  bool normalised) {
  const ExpertConfig& from = config.experts;
  if (from.n == 0) return;
  const Scoring scored = from.scoring.value_or(scoring);
  for (size_t i = from.n_leading_dense; i < arch.layers.size(); ++i) {
    if (!arch.layers[i].feed_forward) continue;
    FeedForward& network = *arch.layers[i].feed_forward;
    network.experts =
        Experts{.n = from.n,
                .n_chosen = from.n_chosen,
                .dim = from.dim != 0 ? from.dim : network.dim,
                .shared_dim = from.shared_dim,
                .scoring = scored,
                .normalised = from.normalised.value_or(normalised),
                .scale = from.scale != 0 ? from.scale : 1,
                .n_groups = std::max(from.n_groups, 1u),
                .n_groups_chosen = std::max(from.n_groups_chosen, 1u),
                .group_best = from.n_groups > 1 && scored == Scoring::sigmoid ? 2u : 1u};
  }
}

void give_latents(ArchDescriptor& arch, const ModelConfig& config) {
  require(config.latent.rank, "rank of keys and values", config);
  require(config.latent.value_dim, "length of a value", config);
  give_attention_scale(arch, config, 0);
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (config.layers[i].recurs) continue;
    const Attention& from = *arch.layers[i].attention();
    LatentAttention latent = config.latent;
    latent.n_heads = from.n_heads;
    latent.head_dim = from.head_dim;
    latent.scale = from.scale;
    latent.rope = from.rope;
    latent.rope.factor = config.rope_attention_factor;
    if (latent.norm_epsilon == 0) latent.norm_epsilon = config.norm_epsilon;
    arch.layers[i].mixer = latent;
    if (latent.rope.dim >= latent.head_dim)
      throw ModelFormatError("all " + std::to_string(latent.head_dim) +
                             " numbers of a head rotate; latent attention has some that do not");
  }
}

}  // namespace akunu::models
