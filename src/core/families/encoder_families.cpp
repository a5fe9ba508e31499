// Encoders of texts and of speech. families.h says what a family is.
#include <cmath>

#include "core/families/families.h"

namespace akunu::families {
namespace {

// What makes an encoder of a decoder: rows see those behind them, too.
void make_encoder(ArchDescriptor& arch, Pooling usual, const ModelConfig& config) {
  arch.embeds = true;
  arch.causal = false;
  arch.pooling = config.pooling.value_or(usual);
}

}  // namespace

// Gemma 3's layers as an encoder: a window is half before a row and half behind it.
ArchDescriptor gemma_embedding(const ModelConfig& config) {
  ArchDescriptor arch = gemma3(config);
  make_encoder(arch, Pooling::mean, config);
  for (LayerDescriptor& layer : arch.layers) layer.window /= 2;
  return arch;
}

// Llama's layers as an encoder (Boizard et al., 2025).
ArchDescriptor eurobert(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  make_encoder(arch, Pooling::mean, config);
  return arch;
}

// ModernBERT (Warner et al., 2024): norms before the parts of a layer, rotary positions, GELU in the
// gate, and a window in two of three layers, whose positions turn faster.
ArchDescriptor modern_bert(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  make_encoder(arch, Pooling::first, config);
  arch.norm = NormKind::layer;
  arch.head_activation = Activation::gelu;
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    LayerDescriptor& layer = arch.layers[i];
    layer.activation = Activation::gelu;
    if (!config.layers[i].windowed.value_or(i % 3 != 0)) continue;
    layer.window = (config.window != 0 ? config.window : 128) / 2;
    if (config.rope_theta_windowed != 0) layer.rope_theta = config.rope_theta_windowed;
  }
  return arch;
}

// BERT's frame with rotary positions and a gated feed-forward network (Nussbaum et al., 2024).
ArchDescriptor nomic_bert(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  make_encoder(arch, Pooling::mean, config);
  arch.norm = NormKind::layer;
  arch.norm_place = NormPlace::after_sum;
  return arch;
}

// BERT (Devlin et al., 2018): learned positions, token types, norms behind each sum.
ArchDescriptor bert(const ModelConfig& config) {
  ArchDescriptor arch = nomic_bert(config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.rope_style = RopeStyle::none;
    layer.feed_forward = FeedForward::plain;
    layer.activation = Activation::gelu;
  }
  return arch;
}

// BERT's frame with ALiBi instead of positions, and GELU in the gate (Günther et al., 2023).
ArchDescriptor jina_bert_v2(const ModelConfig& config) {
  ArchDescriptor arch = nomic_bert(config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.rope_style = RopeStyle::none;
    layer.activation = Activation::gelu;
    layer.alibi_bias = 8;
  }
  return arch;
}

// SigLIP (Zhai et al., 2023): learned positions, norms with bias, GELU.
ImageEncoder image_encoder(const ImageConfig& config) {
  require_positive(config.norm_epsilon, "norm_epsilon of its encoder of images");
  LayerDescriptor layer;
  layer.n_heads = layer.n_kv_heads = config.n_heads;
  layer.head_dim = config.dim / config.n_heads;
  layer.attention_scale = 1.0f / std::sqrt(static_cast<float>(layer.head_dim));
  layer.feed_forward = FeedForward::plain;
  layer.activation = Activation::gelu_tanh;
  layer.ffn_dim = config.ffn_dim;
  return {.is = config, .layers = std::vector(config.n_layers, layer)};
}

// Whisper (Radford et al., 2022): learned positions, norms with bias, GELU.
ArchDescriptor whisper(const ModelConfig& config) {
  const auto plain = [](ArchDescriptor arch) {
    for (LayerDescriptor& layer : arch.layers) {
      layer.rope_style = RopeStyle::none;
      layer.feed_forward = FeedForward::plain;
      layer.activation = Activation::gelu;
    }
    return arch;
  };
  ArchDescriptor arch = plain(llama(config));
  arch.norm = NormKind::layer;
  ModelConfig encoder = config;
  encoder.layers = config.audio_layers;
  arch.audio = AudioEncoder{.n_mels = config.n_mels,
                            .n_positions = config.audio_positions,
                            .layers = plain(llama(encoder)).layers};
  return arch;
}

}  // namespace akunu::families
