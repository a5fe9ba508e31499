// Which rows run next. Whoever generates has its row in every step. Beside them run rows that were
// generated before their text stepped back, and pieces of prompts: of several at a time, within a
// budget of rows, since everybody waits for the step to end.
#pragma once

#include <algorithm>
#include <span>

#include "cache/sequence_cache.h"
#include "inference/active.h"
#include "inference/context.h"
#include "inference/prediction_head.h"
#include "inference/step.h"

namespace akunu {

class Composer {
 public:
  // All must outlive this.
  // `draft_model`, `head`: null where there is none.
  Composer(const Context& context, SequenceCache& cache, const RowCosts& costs,
           DraftModel* draft_model, const PredictionHead* head)
      : context_(context), cache_(cache), costs_(costs), draft_model_(draft_model), head_(head) {}

  // Fills `step` with rows of `actives`, which are in order (see goes_before), and says in each of
  // them which rows are its own.
  void compose(std::span<Active> actives, Step& step) const;

  const PlacedImage* first_unread_image(const Active& active) const;
  // The image whose rows are next, where they have no keys and values yet.
  const PlacedImage* image_without_keys(const Active& active) const;
  // How much of a pass in pieces runs after a step: by what the step takes where rows generate, else as much as of a
  // prompt.
  PieceSize piece_size(std::span<const Active> actives, const Step& step) const;

  // Has the draft model read what it lacks of texts that are likely to be drafted.
  void read_ahead(std::span<Active> actives) const;

  // Whether all of its rows have run but that of the token chosen last, which generates the next.
  bool is_generating(const Active& active) const;
  // Whether the row that chooses waits for masks, once it has run in vain.
  static bool waits_for_masks(const Active& active) {
    const TextMasks* const masks = active.task->masks();
    return masks != nullptr && masks->is_late && masks->is_asked();
  }

 private:
  // What is left of a step.
  struct Room {
    uint32_t generated = 0;
    uint32_t prompts = 0;
    uint32_t logits = 0;  // rows that want them, beside one of each task
  };

  const Sequence& sequence_of(const Active& active) const {
    return context_.sequences[active.sequence];
  }
  bool runs_prompt_kernels(const Active& active) const;
  // Whether its rows wait for a pass in pieces: over its window, or over an image.
  bool lacks_input(const Active& active) const;
  uint32_t most_mixed_rows(std::span<const Active> actives) const;
  void plan_chunks(std::span<Active> actives, Room& room) const;
  void plan_prompts(std::span<Active> actives, Room& room) const;
  const PlacedImage* image_from(const Active& active, uint32_t position) const;
  const PlacedImage* image_at(const Active& active, uint32_t position) const;
  void plan_whole(std::span<Active> actives, Room& room) const;
  void plan(Active& active, uint32_t n_rows) const;
  void draft(std::span<Active> actives) const;
  bool may_speculate(const Active& active) const;
  static void count_unused(Active& active, const Speculator::Choice& choice);
  void cut_refused(Active& active) const;
  uint32_t draft_forced(std::span<Active> actives) const;
  uint32_t most_drafted(const Active& active, uint32_t room) const;
  // What the draft model asks for tokens of a text, where in its steps run so many rows already.
  ModelOffer offer_of(uint32_t n_unread, std::span<const uint32_t> n_rows) const;
  void add_generating(std::span<Active> actives, Step& step) const;
  void add_generated_before(std::span<Active> actives, Step& step) const;
  void add_planned(std::span<Active> actives, Step& step, bool prompts, bool logits) const;
  Row next_row(const Active& active) const;
  void give_rope_offsets(const Active& active, std::span<Row> rows) const;

  const Context& context_;
  SequenceCache& cache_;
  const RowCosts& costs_;
  DraftModel* const draft_model_;
  const PredictionHead* const head_;
};

// Positions that the sequence of a task comes to have at most: the last token is chosen, never run.
inline uint32_t most_positions(const Task& task) {
  return task.n_given() + std::max(task.rows().max_chosen, 1u) - 1;
}

}  // namespace akunu
