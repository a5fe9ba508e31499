// Encoders in front of a decoder: of audio and of images.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/blocks/layer.h"

namespace akunu {

// An encoder in front of a decoder: two convolutions over frames of a log-mel spectrogram, of which the
// second halves their number, and layers whose rows see each other. The
// decoder's layers attend to the result.
struct AudioEncoder {
  uint32_t n_mels = 0;
  uint32_t n_positions = 0;
  std::vector<LayerDescriptor> layers;
  // For each layer of the decoder a bit for each head whose attention to the encoder's positions says when a token is
  // said; empty: unknown.
  std::vector<uint32_t> alignment_heads = {};

  uint32_t n_alignment_heads() const {
    uint32_t n = 0;
    for (const uint32_t heads : alignment_heads) n += static_cast<uint32_t>(std::popcount(heads));
    return n;
  }
  static constexpr uint32_t kFramesPerPosition = 2;
  uint32_t n_frames() const { return kFramesPerPosition * n_positions; }
};

// How a square of neighbouring patches becomes a vector of the text.
enum class PatchMerger : uint8_t {
  average,      // the mean, normed and projected (Gemma 3)
  concatenate,  // side by side in one row, projected ("pixel shuffle": Idefics3, SmolVLM)
};

// The encoder of a model that reads images: squares of patch_size pixels, patches_per_side of them in a row, become as
// many rows; tokens_per_side in a row are what the text gets of them.
struct ImageConfig {
  static constexpr uint32_t kMostPatches = 1u << 16;  // more are a mistake in a file

  uint32_t dim = 0;
  uint32_t n_layers = 0;
  uint32_t n_heads = 0;
  uint32_t ffn_dim = 0;
  uint32_t patch_size = 0;
  uint32_t patches_per_side = 0;
  uint32_t tokens_per_side = 0;
  float norm_epsilon = 0;
  uint32_t token = 0;  // that stands in a text for each row of an image
  std::string_view
      preparation;  // "gemma3": how images are prepared, and what stands around them in a text
  uint32_t longest_edge =
      0;  // of an image that is cut into tiles, before that; 0: the file does not say
  PatchMerger merger = PatchMerger::average;
  bool sees_later_rows = false;  // in the text, a row of an image sees the whole image
};

// An encoder of images in front of a decoder (SigLIP, Zhai et al., 2023). Patches become rows that all see each other;
// squares of them become vectors that are rows of the text.
struct ImageEncoder {
  ImageConfig is;
  std::vector<LayerDescriptor> layers;

  static constexpr uint32_t kChannels = 3;
  uint32_t n_patches() const { return is.patches_per_side * is.patches_per_side; }
  uint32_t n_tokens() const { return is.tokens_per_side * is.tokens_per_side; }
  uint32_t patch_numbers() const { return kChannels * is.patch_size * is.patch_size; }
  // Patches that become a token; they lie side by side among the rows.
  uint32_t patches_per_token() const { return n_patches() / n_tokens(); }
  // The number, in the order of the image, of the patch that is this row.
  uint32_t place_of(uint32_t row) const {
    const uint32_t side = is.patches_per_side / is.tokens_per_side;
    const uint32_t token = row / (side * side), within = row % (side * side);
    const uint32_t y = token / is.tokens_per_side * side + within / side;
    const uint32_t x = token % is.tokens_per_side * side + within % side;
    return y * is.patches_per_side + x;
  }
};

}  // namespace akunu
