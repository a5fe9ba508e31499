// Images of texts. What one becomes, rows of the text whose inputs are vectors, does not depend on the text: it is
// computed once, kept by the image, and sent with each step that has these rows.
//
// In the tokens of a task an image's positions have a number beyond every vocabulary, which names what the image
// shows: so a beginning with another image is another beginning, wherever tokens are compared. The device's log and
// callers have the model's own token there.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cache/sequence_store.h"
#include "core/arch.h"

namespace akunu {

struct Model;

constexpr bool is_of_image(uint32_t token) { return token >= kFirstNoToken; }

struct Image {
  std::array<uint8_t, 32> digest = {};  // SHA-256 of its patches
  ImageGrid grid;
  uint32_t n_tokens = 0;  // positions that it has in a text
  uint32_t token = 0;     // of its positions
  // The scheduler's from here on. Patches go when there are vectors.
  std::vector<float> patches;  // [n_patches, patch_numbers], in the order of ImageEncoder::place_of
  std::vector<float> vectors;  // [n_tokens, dim of the text]; empty: it has not been read yet
};

struct PlacedImage {
  uint32_t first = 0;  // position of its first row
  std::shared_ptr<Image> image;

  uint32_t end() const { return first + image->n_tokens; }
};

// Row::rope_offsets of `position` in a text with these images (ImageConfig::has_text_axes). In an image, time stays at its
// first row's, y and x count from there; the text after it continues after the largest of them (Wang et al., 2024,
// Qwen2-VL).
std::array<int32_t, 3> rope_offsets(const ImageEncoder& encoder,
                                    std::span<const PlacedImage> images, uint32_t position);

// The images that a model has seen last: one that comes again keeps its token. Any thread.
class Images {
 public:
  // `width`: how many patches wide the image is; 0: the model's fixed width. Throws UnsupportedModelError for a model that
  // reads no images, ArgumentError where the patches do not fill a rectangle that the model accepts.
  std::shared_ptr<Image> take(const ArchDescriptor& arch, std::span<const float> patches,
                              uint32_t width);

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<Image>> known_;  // last used first
  uint32_t n_taken_ = 0;
};

// Checks images against a text, and gives their positions their tokens. Throws ArgumentError where an image does not
// stand where the text has the model's token for images, and UnsupportedModelError for a model without.
void place_images(const ArchDescriptor& arch, const std::vector<PlacedImage>& images,
                  std::vector<uint32_t>& tokens);

}  // namespace akunu
