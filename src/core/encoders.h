// Encoders in front of a decoder: of audio and of images.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/activation.h"
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
  concatenate,  // side by side in one row, projected ("pixel shuffle": Idefics3, SmolVLM, Qwen2-VL)
};

// Patches in a row of an image, and rows of them.
struct ImageGrid {
  uint32_t width = 0;
  uint32_t height = 0;

  bool operator==(const ImageGrid&) const = default;
};

// The vision encoder of a model. An image is cut into patches of patch_size x patch_size pixels, which are the encoder's
// rows. The text model gets one vector for each square of square_side x square_side patches.
struct ImageConfig {
  static constexpr uint32_t kMostPatches = 1u << 16;  // more are a mistake in a file
  // The limit for images of any shape. Memory for that many is there from the start.
  static constexpr uint32_t kMostPatchesOfAnyShape = 8192;

  uint32_t dim = 0;
  uint32_t n_layers = 0;
  uint32_t n_heads = 0;
  uint32_t ffn_dim = 0;
  uint32_t patch_size = 0;
  uint32_t n_frames = 1;          // in a patch; an image fills each with the same pixels
  uint32_t patches_per_side = 0;  // of an image, which is a square; 0: images have any shape
  uint32_t square_side = 0;       // patches of a side of what becomes a vector
  float norm_epsilon = 0;
  Activation activation = Activation::gelu_tanh;
  bool rotates = false;  // rows have rotary positions of two axes, not an embedding of their place
  float rope_theta = 10000;
  uint32_t token = 0;  // that stands in a text for each row of an image
  std::string_view
      preparation;  // "gemma3": how images are prepared, and what stands around them in a text
  uint32_t longest_edge =
      0;  // of an image that is cut into tiles, before that; 0: the file does not say
  PatchMerger merger = PatchMerger::average;
  // Between two matrices of the projection; none: there is one matrix.
  Activation projector_activation = Activation::none;
  bool sees_later_rows = false;  // in the text, a row of an image sees the whole image
  // In the text model, tokens of an image have rotary positions of three axes (M-RoPE). The text after the image continues
  // at the largest of these positions plus 1.
  bool has_text_axes = false;

  bool has_any_shape() const { return patches_per_side == 0; }
};

// An encoder of images in front of a decoder (SigLIP, Zhai et al., 2023). Patches become rows that all see each other;
// squares of them become vectors that are rows of the text.
struct ImageEncoder {
  ImageConfig is;
  std::vector<LayerDescriptor> layers;

  static constexpr uint32_t kChannels = 3;
  // At most.
  uint32_t n_patches() const {
    return is.has_any_shape() ? is.kMostPatchesOfAnyShape
                              : is.patches_per_side * is.patches_per_side;
  }
  uint32_t n_tokens() const { return n_patches() / patches_per_token(); }
  uint32_t patch_numbers() const { return kChannels * is.n_frames * is.patch_size * is.patch_size; }
  // Patches that become a token; they lie side by side among the rows.
  uint32_t patches_per_token() const { return is.square_side * is.square_side; }

  struct Place {
    uint32_t x = 0;
    uint32_t y = 0;
  };
  // The column and row, counted in patches, of the patch that the encoder has in this row.
  Place place_of(const ImageGrid& grid, uint32_t row) const {
    const uint32_t side = is.square_side, in_row = grid.width / side;
    const uint32_t token = row / patches_per_token(), within = row % patches_per_token();
    return {.x = token % in_row * side + within % side, .y = token / in_row * side + within / side};
  }
};

}  // namespace akunu
