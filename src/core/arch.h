// ArchDescriptor: everything that a model's architecture says and its tensors don't. A family (models/family.h) fills it
// from what the file says (core/model_config.h); no code below it asks for an architecture's name. Layers are made of
// blocks (core/blocks/layer.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/activation.h"
#include "core/blocks/layer.h"
#include "core/blocks/residual_streams.h"
#include "core/encoders.h"
#include "core/pooling.h"

namespace akunu {

enum class NormKind : uint8_t { rms, layer };
// Where a layer's two norms are: before attention and feed-forward, or after each was added to the
// residual, which is then the normed sum. none: there are only those of `post_norms`.
enum class NormPlace : uint8_t { before, after_sum, none };

struct ArchDescriptor {
  // An encoder, or a decoder used as one: a text's rows run in one step, attend to each other and
  // leave nothing in a cache; what comes out are the pooled rows, or a classifier's scores of them.
  bool embeds = false;
  bool causal = true;  // false: every row sees all rows
  RopeStyle row_style =
      RopeStyle::halves;  // how rows of Q and K lie, of layers without positions too
  NormKind norm = NormKind::rms;
  NormPlace norm_place = NormPlace::before;
  bool post_norms = false;  // after each part of a layer, before it is added to the residual
  bool parallel = false;    // attention and feed-forward both read the layer's one normed input
  Pooling pooling = Pooling::mean;  // of an encoder, where the caller does not say
  uint32_t dim = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;
  float norm_epsilon = 0;
  float embedding_scale = 1;
  float residual_scale = 1;  // of what attention and feed-forward add to the residual
  float logit_scale = 1;
  uint32_t per_layer_dim = 0;  // numbers of a token for each layer (per-layer embeddings); 0: none
  uint32_t position_offset = 0;  // the row of the position embedding that position 0 has
  Activation head_activation = Activation::tanh;  // of a classifier's dense layer
  std::array<Activation, 2> dense_activations{Activation::none, Activation::none};
  float logit_soft_cap = 0;             // 0: none
  std::vector<LayerDescriptor> layers;  // a prediction head's last
  // How many of them are a prediction head: 0 or 1. From a row and the next token it makes logits of the token after
  // that.
  uint32_t n_ahead = 0;
  std::optional<ResidualStreams> streams;
  std::optional<AudioEncoder> audio;  // its texts are what is said in a window of speech
  std::optional<ImageEncoder> images;
};

// How many of the layers every row goes through: those of a prediction head come last.
inline uint32_t n_own_layers(const ArchDescriptor& arch) {
  return static_cast<uint32_t>(arch.layers.size()) - arch.n_ahead;
}

}  // namespace akunu
