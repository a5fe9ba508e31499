#include "inference/image.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/sha256.h"
#include "inference/model.h"
#include "inference/step.h"

namespace akunu {
namespace {

// Vectors of one are some megabytes.
constexpr size_t kMostKnown = 32;

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
  if (known_.size() > kMostKnown) known_.pop_back();
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

void read_image(Model& model, Image& image) {
  const ImageEncoder& encoder = *model.context.arch().images;
  Device& device = *model.context.device;
  device.write(model.context.patches.binding(), std::as_bytes(std::span(image.patches)));
  std::vector<Row> rows(encoder.n_patches());
  for (uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].position = encoder.place_of(i);
    rows[i].kv_length = rows[i].position + 1;
    rows[i].flags = kRowActive | kRowPrompt;
    rows[i].head_row = rows[i].adapter = rows[i].last_position = rows[i].second_segment = kNone;
  }
  const auto submit = [&](std::span<const Span> spans, const Pass& pass) {
    await_all_well(
        model.context,
        device.submit(
            {.rows = rows, .spans = spans, .updates = {}, .passes = std::span(&pass, 1)}));
  };
  const Span all{0, 0, encoder.n_patches(), 0};
  submit({&all, 1},
         {.program = model.programs.encode_image, .n_rows = encoder.n_patches(), .n_spans = 1});

  // A span is the patches of one token, whose last row has the head row; as many at a time as there are
  // head rows.
  const uint32_t n_each = encoder.patches_per_token(), n_tokens = encoder.n_tokens();
  const uint32_t most = std::min(n_tokens, model.context.device->chip().max_head_rows);
  std::vector<Span> spans(n_tokens);
  for (uint32_t token = 0; token < n_tokens; ++token) {
    spans[token] = {0, token * n_each, n_each, 0};
    for (uint32_t i = 0; i < n_each; ++i) rows[token * n_each + i].span = token;
    Row& last = rows[(token + 1) * n_each - 1];
    last.head_row = token % most;
    last.pool = kPoolMean;
  }
  const uint32_t dim = model.context.arch().dim;
  std::vector<float> vectors(uint64_t{n_tokens} * dim);
  for (uint32_t first = 0; first < n_tokens; first += most) {
    const uint32_t n = std::min(most, n_tokens - first);
    submit(spans, {.program = model.programs.project_image,
                   .first_row = first * n_each,
                   .n_rows = n * n_each,
                   .first_head_row = 0,
                   .n_head_rows = n,
                   .first_span = first,
                   .n_spans = n});
    device.read(model.programs.image_vectors, std::as_writable_bytes(std::span(vectors).subspan(
                                                  uint64_t{first} * dim, uint64_t{n} * dim)));
  }
  image.vectors = std::move(vectors);
  image.patches = {};
}

}  // namespace akunu
