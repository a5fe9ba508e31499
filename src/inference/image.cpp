#include "inference/image.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/sha256.h"

namespace akunu {
namespace {

// Images that are remembered: as many as have this many vectors, and some in any case.
constexpr size_t kKnownBytes = 64u << 20;
constexpr size_t kKnownAlways = 32;

const ImageEncoder& encoder_of(const ArchDescriptor& arch) {
  if (!arch.images) throw UnsupportedModelError("this model reads no images");
  return *arch.images;
}

ImageGrid grid_of(const ImageEncoder& encoder, size_t n_numbers, uint32_t width) {
  const uint32_t fixed = encoder.is.patches_per_side;
  if (width == 0) width = fixed;
  const uint32_t n_each = encoder.patch_numbers(), side = encoder.is.square_side;
  const uint64_t n = n_numbers / n_each;
  const ImageGrid grid{width, width == 0 ? 0 : static_cast<uint32_t>(n / width)};
  const std::string is = "an image has " + std::to_string(n_numbers) + " numbers, " +
                         std::to_string(width) + " patches in a row";
  if (n == 0 || width == 0 || n % width != 0 || n_numbers % n_each != 0 || width % side != 0 ||
      grid.height % side != 0)
    throw ArgumentError(is + "; this model's patches have " + std::to_string(n_each) +
                        " numbers, in squares of " + std::to_string(side) + " x " +
                        std::to_string(side));
  if (fixed != 0 ? grid != ImageGrid{fixed, fixed} : n > encoder.n_patches())
    throw ArgumentError(is + (fixed != 0 ? "; this model's have " + std::to_string(fixed) + " x " +
                                               std::to_string(fixed) + " patches"
                                         : "; at most " + std::to_string(encoder.n_patches()) +
                                               " patches are read"));
  return grid;
}

}  // namespace

std::array<int32_t, 3> rope_offsets(const ImageEncoder& encoder,
                                    std::span<const PlacedImage> images, uint32_t position) {
  const uint32_t side = encoder.is.square_side;
  int32_t offset = 0;
  for (const PlacedImage& each : images) {
    const ImageGrid& grid = each.image->grid;
    if (position < each.first) break;
    if (position < each.end()) {
      const uint32_t row = position - each.first, in_row = grid.width / side;
      const auto behind = offset - static_cast<int32_t>(row);
      return {behind, behind + static_cast<int32_t>(row / in_row),
              behind + static_cast<int32_t>(row % in_row)};
    }
    offset += static_cast<int32_t>(std::max(grid.width, grid.height) / side) -
              static_cast<int32_t>(each.image->n_tokens);
  }
  return {offset, offset, offset};
}

std::shared_ptr<Image> Images::take(const ArchDescriptor& arch, std::span<const float> patches,
                                    uint32_t width) {
  const ImageEncoder& encoder = encoder_of(arch);
  const ImageGrid grid = grid_of(encoder, patches.size(), width);
  const auto digest = sha256(std::as_bytes(patches));
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      known_, [&](const auto& each) { return each->digest == digest && each->grid == grid; });
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
    return known_.front();
  }
  if (n_taken_ + 1 == kFirstNoToken) throw Error("this model has read too many images");
  auto image = std::make_shared<Image>();
  image->digest = digest;
  image->grid = grid;
  image->n_tokens = grid.width * grid.height / encoder.patches_per_token();
  image->token = kFirstNoToken + ++n_taken_;
  image->patches.assign(patches.begin(), patches.end());
  known_.push_front(image);
  const size_t most = kKnownBytes / (uint64_t{encoder.n_tokens()} * arch.dim * sizeof(float));
  if (known_.size() > std::max(most, kKnownAlways)) known_.pop_back();
  return image;
}

void place_images(const ArchDescriptor& arch, const std::vector<PlacedImage>& images,
                  std::vector<uint32_t>& tokens) {
  if (images.empty()) return;
  const ImageEncoder& encoder = encoder_of(arch);
  uint64_t end = 0;
  for (const PlacedImage& each : images) {
    const std::string at = "the image at token " + std::to_string(each.first);
    if (each.first < end) throw ArgumentError(at + " begins before the one before it ends");
    end = uint64_t{each.first} + each.image->n_tokens;
    if (end > tokens.size())
      throw ArgumentError(at + " has " + std::to_string(each.image->n_tokens) +
                          " tokens; the prompt ends before");
    for (uint64_t i = each.first; i < end; ++i) {
      if (tokens[i] != encoder.is.token)
        throw ArgumentError(at + ": token " + std::to_string(i) + " is " +
                            std::to_string(tokens[i]) + "; an image's are " +
                            std::to_string(encoder.is.token));
      tokens[i] = each.image->token;
    }
  }
}

}  // namespace akunu
