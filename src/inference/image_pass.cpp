#include "inference/image_pass.h"

#include <span>
#include <utility>
#include <vector>

#include "inference/model.h"

namespace akunu {

namespace {

// The encoder's programs are compiled for the largest image; this one may have fewer patches.
std::vector<PassPart> parts_for(const Model& model, const Image& image) {
  std::vector<PassPart> parts = model.programs.encoder.parts;
  for (PassPart& part : parts)
    part.n_rows = part.rows_per_output == 1 ? image.n_tokens : image.grid.width * image.grid.height;
  return parts;
}

}  // namespace

ImagePass::ImagePass(Model& model, CutPace& pace, std::shared_ptr<Image> image)
    : CutPass(model, pace, parts_for(model, *image)),
      image_(std::move(image)),
      vectors_(uint64_t{image_->n_tokens} * model.context.arch().dim) {
  model.context.device->write(model.programs.encoder.input,
                              std::as_bytes(std::span(image_->patches)));
}

// The span of an output is the patches of a token, whose last row has the head row.
void ImagePass::lay_out(const PassPart& part) {
  const ImageEncoder& encoder = *model_.context.arch().images;
  rows_.resize(part.n_rows);
  for (uint32_t i = 0; i < part.n_rows; ++i) {
    const ImageEncoder::Place place = encoder.place_of(image_->grid, i);
    rows_[i] = row_at(place.y * image_->grid.width + place.x);
    const auto position = static_cast<int32_t>(rows_[i].position);
    rows_[i].rope_offsets[1] = static_cast<int32_t>(place.y) - position;
    rows_[i].rope_offsets[2] = static_cast<int32_t>(place.x) - position;
  }
  seen_ = {{0, 0, part.n_rows, 0}};
  const uint32_t n_each = part.rows_per_output;
  if (n_each == 0) return;
  seen_.resize(part.n_rows / n_each);
  for (uint32_t token = 0; token < seen_.size(); ++token) {
    seen_[token] = {0, token * n_each, n_each, 0};
    for (uint32_t i = 0; i < n_each; ++i) rows_[token * n_each + i].span = token;
    rows_[(token + 1) * n_each - 1].pool = kPoolMean;
  }
}

void ImagePass::take_outputs(uint32_t first, uint32_t n) {
  const uint64_t dim = model_.context.arch().dim;
  model_.context.device->read(
      model_.programs.encoder.output,
      std::as_writable_bytes(std::span(vectors_).subspan(first * dim, n * dim)));
}

void ImagePass::finish(Active&) {
  image_->vectors = std::move(vectors_);
  image_->patches = {};
}

}  // namespace akunu
