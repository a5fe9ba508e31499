#include "inference/image_pass.h"

#include <span>
#include <utility>

#include "inference/model.h"

namespace akunu {

ImagePass::ImagePass(Model& model, CutPace& pace, std::shared_ptr<Image> image)
    : CutPass(model, pace, model.programs.encoder.parts),
      image_(std::move(image)),
      vectors_(uint64_t{model.context.arch().images->n_tokens()} * model.context.arch().dim) {
  model.context.device->write(model.programs.encoder.input,
                              std::as_bytes(std::span(image_->patches)));
}

// The span of an output is the patches of a token, whose last row has the head row.
void ImagePass::lay_out(const PassPart& part) {
  const ImageEncoder& encoder = *model_.context.arch().images;
  rows_.resize(part.n_rows);
  for (uint32_t i = 0; i < part.n_rows; ++i) rows_[i] = row_at(encoder.place_of(i));
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
