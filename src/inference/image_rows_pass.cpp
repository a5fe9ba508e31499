#include "inference/image_rows_pass.h"

#include <algorithm>
#include <utility>

#include "inference/model.h"
#include "inference/step.h"

namespace akunu {
ImageRowsPass::ImageRowsPass(Model& model, CutPace& pace, SequenceCache& cache, Active& active,
                             const PlacedImage& image)
    : CutPass(model, pace,
              std::vector(model.programs.image_rows.size(),
                          PassPart{.program = {},
                                   .n_rows = image.end() -
                                             model.context.sequences[active.sequence].n_done})),
      cache_(cache),
      task_(*active.task),
      sequence_(active.sequence),
      first_(model.context.sequences[active.sequence].n_done),
      end_(image.end()),
      vectors_(std::span<const float>(image.image->vectors)
                   .subspan(uint64_t{first_ - image.first} * model.context.arch().dim)),
      log_(active.whole_log),
      is_known_(std::exchange(active.is_known, true)) {}

Program ImageRowsPass::program_of(size_t part) const {
  return model_.programs.of_image_rows(part, task_.choosing().adapters != kNone);
}

void ImageRowsPass::lay_out(const PassPart& part) {
  rows_.resize(part.n_rows);
  for (uint32_t i = 0; i < part.n_rows; ++i) {
    rows_[i] = row_at(first_ + i);
    rows_[i].sequence = sequence_;
    rows_[i].kv_length = end_;
    rows_[i].flags |= kRowVectorInput;
    rows_[i].adapter = task_.choosing().adapters;
  }
  seen_ = {{sequence_, 0, part.n_rows, 0}};
}

// Steps between two pieces have vectors of other images where the first part reads them.
std::span<const Update> ImageRowsPass::updates(size_t first_part) {
  const std::span<const Update> pages = cache_.sequences.take_unsent(sequence_);
  updates_.assign(pages.begin(), pages.end());
  if (!std::exchange(is_known_, true))
    append_sequence(model_.context, sequence_, task_.choosing(), log_, updates_);
  if (first_part == 0) updates_.push_back({model_.context.vectors_of(0), std::as_bytes(vectors_)});
  return updates_;
}

void ImageRowsPass::finish(Active& active) {
  active.n_with_keys = end_;
  const TaskRows& rows = task_.rows();
  const uint32_t last = task_.n_given() - 1;
  const uint32_t first_output = rows.max_chosen > 0 ? last : std::min(rows.first_output, last);
  const uint32_t n_done = std::clamp(first_output, first_, end_);
  cache_.sequences.done(sequence_, n_done);
  active.task->set_given_done(n_done);
}

}  // namespace akunu
