#include "models/common/layers.h"

#include <cmath>
#include <string>

#include "core/error.h"

namespace akunu::models {

void require(uint32_t value, std::string_view what, const ModelConfig& config) {
  if (value == 0)
    throw ModelFormatError("the " + config.architecture + " model does not say its " +
                           std::string(what) + ", or says 0");
}

void require_positive(float value, std::string_view what) {
  if (!(value > 0) || !std::isfinite(value))
    throw ModelFormatError("the " + std::string(what) + " is " + std::to_string(value) +
                           "; it must be a positive number");
}

ArchDescriptor decoder(const ModelConfig& config) {
  ArchDescriptor arch;
  arch.dim = config.dim;
  arch.vocab_size = config.vocab_size;
  arch.context_length = config.context_length;
  arch.norm_epsilon = config.norm_epsilon;
  arch.row_style = RopeStyle::interleaved;
  for (const LayerConfig& from : config.layers) {
    Rope rope = config.rope;
    // GGUF stores the Q and K rows of llama permuted, so that neighbours rotate together.
    rope.style = RopeStyle::interleaved;
    if (from.rope_dim != 0) rope.dim = from.rope_dim;
    arch.layers.push_back(
        {.mixer = Attention{.n_heads = from.n_heads,
                            .n_kv_heads = from.n_kv_heads,
                            .head_dim = from.head_dim,
                            .scale = 1.0f / std::sqrt(static_cast<float>(from.head_dim)),
                            .window = from.windowed.value_or(true) ? config.window : 0,
                            .rope = rope},
         .feed_forward = FeedForward{.dim = from.ffn_dim}});
  }
  return arch;
}

ArchDescriptor decoder_of_halves(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  rotate_as(arch, RopeStyle::halves);
  return arch;
}

void rotate_as(ArchDescriptor& arch, RopeStyle style) {
  if (style != RopeStyle::none) arch.row_style = style;
  for (LayerDescriptor& layer : arch.layers)
    if (Rope* const rope = layer.rope()) rope->style = style;
}

void give_activation(ArchDescriptor& arch, Activation activation) {
  for (FeedForward& network : networks_of(arch)) network.activation = activation;
}

void give_plain_networks(ArchDescriptor& arch, Activation activation) {
  for (FeedForward& network : networks_of(arch)) network.is_gated = false;
  give_activation(arch, activation);
}

void give_windows(ArchDescriptor& arch, const ModelConfig& config, size_t period,
                  uint32_t usual_window) {
  const uint32_t window = config.window != 0 ? config.window : usual_window;
  for (size_t i = 0; i < arch.layers.size(); ++i)
    if (Attention* const attention = arch.layers[i].attention())
      attention->window = config.layers[i].windowed.value_or((i + 1) % period != 0) ? window : 0;
}

void give_windows_own_rope(ArchDescriptor& arch, const ModelConfig& config, float usual_theta) {
  const float theta = config.rope_theta_windowed != 0 ? config.rope_theta_windowed : usual_theta;
  for (Attention& attention : attention_of(arch)) {
    if (attention.window == 0) continue;
    if (theta != 0) attention.rope.theta = theta;
    attention.rope.linear_factor = attention.rope.dynamic_factor = 1;
  }
}

void rotate_windows_only(ArchDescriptor& arch, const ModelConfig& config) {
  if (config.window == 0) return;
  for (Attention& attention : attention_of(arch))
    if (attention.window == 0) attention.rope.style = RopeStyle::none;
}

void give_unrotated(ArchDescriptor& arch, const ModelConfig& config, size_t period) {
  for (size_t i = 0; i < arch.layers.size(); ++i)
    if (!config.layers[i].rotates.value_or(period == 0 || (i + 1) % period != 0))
      arch.layers[i].rope()->style = RopeStyle::none;
}

void give_attention_scale(ArchDescriptor& arch, const ModelConfig& config, size_t n_largest) {
  for (Attention& attention : attention_of(arch)) {
    if (arch.layers.size() == n_largest)
      attention.scale = 1.0f / std::sqrt(static_cast<float>(arch.dim / attention.n_heads));
    if (config.attention_scale != 0) attention.scale = config.attention_scale;
  }
}

void give_soft_caps(ArchDescriptor& arch, const ModelConfig& config, float of_attention,
                    float of_logits) {
  arch.logit_soft_cap = config.logit_soft_cap.value_or(of_logits);
  for (Attention& attention : attention_of(arch))
    attention.soft_cap = config.attention_soft_cap.value_or(of_attention);
}

void norm_behind_only(ArchDescriptor& arch) {
  arch.norm_place = NormPlace::none;
  arch.post_norms = true;
  give_head_norms(arch, HeadNorms::each);
}

void give_head_norms(ArchDescriptor& arch, HeadNorms norms) {
  for (Attention& attention : attention_of(arch)) attention.head_norms = norms;
}

void share_keys(ArchDescriptor& arch, uint32_t n) {
  const size_t n_layers = arch.layers.size();
  if (n >= n_layers)
    throw ModelFormatError(
        std::to_string(n) + " of " + std::to_string(n_layers) +
        " layers read the keys and values of others; one at least needs its own");
  const auto n_own = static_cast<uint32_t>(n_layers - n);
  for (size_t i = n_own; i < n_layers; ++i) {
    Attention& reader = *arch.layers[i].attention();
    for (uint32_t own = 0; own < n_own; ++own)
      if (arch.layers[own].attention()->window == reader.window) reader.kv_from = own;
    if (!reader.kv_from)
      throw ModelFormatError("layer " + std::to_string(i) +
                             " has no keys and values, and no layer before it that sees as much");
  }
}

void make_encoder(ArchDescriptor& arch, Pooling usual, const ModelConfig& config) {
  arch.embeds = true;
  arch.causal = false;
  arch.pooling = config.pooling.value_or(usual);
}

namespace {

// Rotary positions of an image: half of the pairs turn by y, then half of them by x, with the same frequencies.
Rope rope_of_places(uint32_t head_dim, float theta) {
  if (head_dim % 4 != 0 || head_dim / 2 > RopeAxes::kMostPairs)
    throw UnsupportedModelError("heads of " + std::to_string(head_dim) +
                                " numbers in the encoder of images; rotary positions of two axes "
                                "need a multiple of 4, and at most " +
                                std::to_string(2 * RopeAxes::kMostPairs));
  Rope rope{.style = RopeStyle::halves, .dim = head_dim, .theta = theta};
  rope.n_pairs_of_axis = head_dim / 4;
  for (uint32_t pair = 0; pair < head_dim / 2; ++pair)
    rope.axes.set(pair, pair < rope.n_pairs_of_axis ? 1 : 2);
  return rope;
}

}  // namespace

void give_images(ArchDescriptor& arch, const ModelConfig& config) {
  if (!config.images) return;
  const ImageConfig& from = *config.images;
  require_positive(from.norm_epsilon, "norm_epsilon of its encoder of images");
  if (from.token >= config.vocab_size)
    throw ModelFormatError("the token of images (image_token_id or image_token_index) is " +
                           std::to_string(from.token) + "; the vocabulary has " +
                           std::to_string(config.vocab_size) + " tokens");
  const uint32_t head_dim = from.dim / from.n_heads;
  LayerDescriptor layer{.mixer = Attention{.n_heads = from.n_heads,
                                           .n_kv_heads = from.n_heads,
                                           .head_dim = head_dim,
                                           .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))},
                        .feed_forward = FeedForward{
                            .is_gated = false, .activation = from.activation, .dim = from.ffn_dim}};
  if (from.rotates) layer.attention()->rope = rope_of_places(head_dim, from.rope_theta);
  if (from.has_text_axes && config.rope.axes == RopeAxes{})
    throw ModelFormatError(
        "the model does not say which pairs of a head turn by which axis of an "
        "image: mrope_section needs three counts of pairs, half of a head in all");
  arch.images = ImageEncoder{.is = from, .layers = std::vector(from.n_layers, layer)};
  if (!from.sees_later_rows) return;
  // Tokens of an image attend to the whole image, so a sliding window must not be shorter than an image.
  const uint32_t n_tokens = arch.images->n_tokens();
  for (const Attention& attention : attention_of(arch))
    if (attention.window != 0 && attention.window < n_tokens)
      throw UnsupportedModelError("windows of " + std::to_string(attention.window) +
                                  " positions are shorter than images, which have " +
                                  std::to_string(n_tokens));
}

}  // namespace akunu::models
