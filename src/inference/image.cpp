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

}  // namespace

std::shared_ptr<Image> Images::take(const ArchDescriptor& arch, std::span<const float> patches) {
  const ImageEncoder& encoder = encoder_of(arch);
  const uint64_t n = uint64_t{encoder.n_patches()} * encoder.patch_numbers();
  if (patches.size() != n)
    throw ArgumentError("an image has " + std::to_string(patches.size()) +
                        " numbers; this model's have " + std::to_string(encoder.n_patches()) +
                        " patches of " + std::to_string(encoder.patch_numbers()));
  const auto digest = sha256(std::as_bytes(patches));
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(known_, [&](const auto& each) { return each->digest == digest; });
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
    return known_.front();
  }
  if (n_taken_ + 1 == kFirstNoToken) throw Error("this model has read too many images");
  auto image = std::make_shared<Image>();
  image->digest = digest;
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
    end = uint64_t{each.first} + encoder.n_tokens();
    if (end > tokens.size())
      throw ArgumentError(at + " has " + std::to_string(encoder.n_tokens()) +
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
