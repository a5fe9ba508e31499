// The parts of which a family's `describe` is made: a decoder to begin with, and changes to its layers. Each throws
// ModelFormatError for a number that is missing or makes no sense, UnsupportedModelError for what akunu cannot compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>

#include "core/arch.h"
#include "core/model_config.h"

namespace akunu::models {

void require(uint32_t value, std::string_view what, const ModelConfig& config);
void require_positive(float value, std::string_view what);

// layers.cpp
// Llama's pre-norm layers, with grouped-query attention and a gated feed-forward network. Rotary positions rotate pairs of
// dimensions of a head: (2i, 2i + 1) in `decoder`, (i, i + head_dim / 2) in `decoder_of_halves`.
ArchDescriptor decoder(const ModelConfig& config);
ArchDescriptor decoder_of_halves(const ModelConfig& config);
// The attention of the layers that have it, and the feed-forward networks of those that have one:
//   for (Attention& attention : attention_of(arch)) attention.output_gate = true;
inline auto attention_of(ArchDescriptor& arch) {
  return arch.layers |
         std::views::filter([](LayerDescriptor& layer) { return layer.attention() != nullptr; }) |
         std::views::transform(
             [](LayerDescriptor& layer) -> Attention& { return *layer.attention(); });
}
inline auto networks_of(ArchDescriptor& arch) {
  return arch.layers |
         std::views::filter([](LayerDescriptor& layer) { return layer.feed_forward.has_value(); }) |
         std::views::transform(
             [](LayerDescriptor& layer) -> FeedForward& { return *layer.feed_forward; });
}
// All layers rotate so; none: they have no rotary positions, and rows of Q and K lie as before.
void rotate_as(ArchDescriptor& arch, RopeStyle style);
// Feed-forward networks of all layers: their activation; plain ones have no gate.
void give_activation(ArchDescriptor& arch, Activation activation);
void give_plain_networks(ArchDescriptor& arch, Activation activation);
// Every `period`th layer has full attention, the others a sliding window, unless the file says which.
void give_windows(ArchDescriptor& arch, const ModelConfig& config, size_t period,
                  uint32_t usual_window);
// Layers with windows rotate by the base that the file says for them, or else by the usual one, and their positions are
// never scaled; 0: by the base of the other layers.
void give_windows_own_rope(ArchDescriptor& arch, const ModelConfig& config, float usual_theta);
// In a model with windows, layers that see everything have no rotary positions.
void rotate_windows_only(ArchDescriptor& arch, const ModelConfig& config);
// Only every `period`th layer has no rotary positions, unless the file says which; 0: all have them.
void give_unrotated(ArchDescriptor& arch, const ModelConfig& config, size_t period);
// The scale is 1 / sqrt(head_dim), in the largest model of a generation 1 / sqrt(dim / n_heads); or what the file says.
void give_attention_scale(ArchDescriptor& arch, const ModelConfig& config, size_t n_largest);
// Where the file has none, these; 0: none.
void give_soft_caps(ArchDescriptor& arch, const ModelConfig& config, float of_attention,
                    float of_logits);
void give_head_norms(ArchDescriptor& arch, HeadNorms norms);
// Norms only after attention and feed-forward, none before: these read the residual as it is.
void norm_behind_only(ArchDescriptor& arch);
// The last `n` layers have no keys and values of their own. Each reads those of the last layer in front of them that has
// the same window.
void share_keys(ArchDescriptor& arch, uint32_t n);
// Makes an encoder of a decoder: attention is not causal.
void make_encoder(ArchDescriptor& arch, Pooling usual, const ModelConfig& config);
// The encoder of images, if the file has one: SigLIP (Zhai et al., 2023) with learned positions, norms with bias, GELU.
void give_images(ArchDescriptor& arch, const ModelConfig& config);

// expert_layers.cpp
// Every layer, or those behind the first few, has experts. The arguments: what holds where the file says nothing.
void give_experts(ArchDescriptor& arch, const ModelConfig& config, Scoring scoring,
                  bool normalised);
// Multi-head latent attention. Its scale is that of a head before its keys are compressed, times what YaRN adds.
void give_latents(ArchDescriptor& arch, const ModelConfig& config);

// recurrent_layers.cpp
// Short convolutions, the gated delta rule and scans instead of attention, or scans next to it, in the layers that the file
// says.
void give_convolutions(ArchDescriptor& arch, const ModelConfig& config);
void give_delta_rules(ArchDescriptor& arch, const ModelConfig& config);
void give_scans(ArchDescriptor& arch, const ModelConfig& config);
void give_scans_beside(ArchDescriptor& arch, const ModelConfig& config);

}  // namespace akunu::models
