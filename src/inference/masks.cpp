#include "inference/masks.h"

#include <algorithm>

namespace akunu {

Masks::Masks(const Model& model)
    : model_(model),
      n_words_(model.mask_bytes() / sizeof(uint32_t)),
      words_(model.max_head_rows() * n_words_) {}

void Masks::fill(std::span<const Active> actives, Step& step) {
  uint32_t begin = model_.max_head_rows(), end = 0;
  for (const Active& active : actives) {
    if (!active.is_masked) continue;
    const uint32_t n = 1 + static_cast<uint32_t>(active.drafted.size());
    const uint32_t first = step.head_row(active.first_row + active.n_rows - n);
    const std::span masks = std::span(words_).subspan(first * n_words_, n * n_words_);
    if (!active.task->constraint()->fill(active.drafted, masks))
      std::ranges::fill(masks, UINT32_MAX);
    begin = std::min(begin, first);
    end = std::max(end, first + n);
  }
  if (begin >= end) return;
  const std::span used = std::span(words_).subspan(begin * n_words_, (end - begin) * n_words_);
  step.update(model_.mask(begin), std::as_bytes(used));
}

}  // namespace akunu
