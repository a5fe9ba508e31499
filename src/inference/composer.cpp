#include "inference/composer.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <vector>

namespace akunu {
namespace {

// Rows of a step for each prompt that waits, where fewer wait than generate: a tile of a GPU's matmul.
constexpr uint32_t kRowsOfWaiting = 128;
// What a draft model has usually yet to read of a text: the last drafted token, and the one behind it.
constexpr uint32_t kFewRowsUnread = 2;
// Tokens of a prediction head, in a row, that were not worth drafting.
constexpr uint32_t kMostUnused = 64;
// How long a piece of a pass takes after a step of rows that generate, in such steps: their tokens come after 1.75 of the
// usual time, and before 3 of it where the piece takes twice as long as it was expected to.
constexpr double kPieceSteps = 0.75;
// A piece where no rows generate: a text that comes waits for it no longer than for a chain of steps.
constexpr double kPieceSeconds = 0.02;

}  // namespace

bool Composer::is_generating(const Active& active) const {
  const Sequence& sequence = sequence_of(active);
  return active.is_known && sequence.n_done >= active.task->n_given() &&
         sequence.n_done + 1 == sequence.tokens.size();
}

// Rows that were generated run the kernels of those that generate again: they have the bits that
// they had in no others.
bool Composer::runs_prompt_kernels(const Active& active) const {
  return !active.task->rows().generated && sequence_of(active).n_done < active.task->n_given();
}

void Composer::compose(std::span<Active> actives, Step& step) const {
  step.clear();
  for (Active& active : actives) {
    active.n_rows = 0;
    active.chooses = active.wants_logits = active.is_masked = active.scores_prompt = false;
    active.is_late = false;
    active.waits = waits_for_masks(active);
    active.lacks_input = lacks_input(active);
    active.is_generating = is_generating(active);
  }
  draft(actives);
  add_generating(actives, step);
  add_generated_before(actives, step);
  // Every text has one row with logits, and one more for each of its drafted tokens.
  uint32_t n_drafted = 0;
  for (const Active& active : actives) n_drafted += static_cast<uint32_t>(active.drafted.size());
  Room room{
      .generated = context_.sizes.max_generated_rows - step.n_generated(),
      .prompts = context_.sizes.max_prompt_rows,
      .logits = context_.sizes.max_head_rows - static_cast<uint32_t>(actives.size()) - n_drafted};
  plan_whole(actives, room);
  plan_chunks(actives, room);
  add_planned(actives, step, false, true);
  // Keep the step short: a text generates beside this prompt, or the step is idle work that a request may
  // interrupt.
  const bool is_short = !step.empty() || std::ranges::none_of(actives, [](const Active& active) {
    return active.task->rows().has_output();
  });
  if (is_short) room.prompts = std::min(room.prompts, most_mixed_rows(actives));
  plan_prompts(actives, room);
  add_planned(actives, step, true, false);
  add_planned(actives, step, true, true);
}

// Of prompts beside rows that generate, which wait for all of them: more where many prompts wait, as many as a step can
// have where those who generate are the fewer.
uint32_t Composer::most_mixed_rows(std::span<const Active> actives) const {
  const ChipConfig& chip = context_.device->chip();
  uint32_t n_generating = 0, n_waiting = 0;
  for (const Active& active : actives) {
    n_generating += active.is_generating;
    n_waiting += !active.is_generating && active.task->rows().has_output();
  }
  const uint32_t most = std::max(chip.max_mixed_rows, chip.max_crowded_rows);
  return n_waiting > n_generating
             ? most
             : std::clamp(kRowsOfWaiting * n_waiting, chip.max_mixed_rows, most);
}

ModelOffer Composer::offer_of(uint32_t n_unread, std::span<const uint32_t> n_rows) const {
  ModelOffer offer;
  const double of_target = costs_.of(1);
  for (uint32_t n = 1; n <= kMostDrafted; ++n) {
    const uint32_t before = n_rows[n - 1];
    const double of_others = before == 0 ? 0 : draft_model_->seconds(before, of_target);
    offer.seconds[n] = offer.seconds[n - 1] +
                       draft_model_->seconds(before + (n == 1 ? n_unread : 1), of_target) -
                       of_others;
  }
  return offer;
}

// Beside a prompt or in the place of what would be drafted, a piece at a time: others wait for it.
void Composer::read_ahead(std::span<Active> actives) const {
  if (draft_model_ == nullptr) return;
  std::vector<DraftModel::Wish> wishes;
  const std::array<uint32_t, kMostDrafted> no_rows{};
  bool others_generate = false;
  for (const Active& active : actives) {
    others_generate |= active.draft == nullptr && is_generating(active);
    if (active.draft == nullptr) continue;
    const std::span<const uint32_t> tokens = sequence_of(active).tokens;
    const uint32_t n_unread = draft_model_->n_unread(*active.draft, tokens);
    if (n_unread <= DraftModel::kMostUnread || n_unread == kNone) {
      others_generate |= is_generating(active);
      continue;
    }
    const Task& task = *active.task;
    const auto n_left = task.rows().max_chosen - static_cast<uint32_t>(task.chosen().size());
    if (active.speculator->is_worth_reading(costs_,
                                            draft_model_->seconds_to_read(n_unread, costs_.of(1)),
                                            n_left, offer_of(kFewRowsUnread, no_rows)))
      wishes.push_back({active.draft.get(), tokens});
  }
  if (wishes.empty()) return;
  const ChipConfig& chip = context_.device->chip();
  draft_model_->read(wishes, others_generate ? chip.max_mixed_rows : kNone,
                     actives.front().task->priority());
}

// Drafted rows, at most kMostDrafted of all texts together; earlier texts first.
void Composer::draft(std::span<Active> actives) const {
  uint32_t room = draft_forced(actives);
  uint32_t n_rows = 0;
  double n_expected = 0;
  for (const Active& active : actives) {
    if (!active.is_generating || active.waits) continue;
    n_rows += 1 + static_cast<uint32_t>(active.drafted.size());
    n_expected += 1 + static_cast<double>(active.drafted.size());
  }
  std::vector<DraftModel::Wish> wishes;
  std::array<uint32_t, kMostDrafted> n_model_rows{};  // of the draft model's steps
  for (Active& active : actives) {
    if (!may_speculate(active)) continue;
    if (active.is_masked && !active.task->masks()->drafted().empty()) {
      // Its masks came late, and are of these.
      const std::span<const uint32_t> drafted = active.task->masks()->drafted();
      const uint32_t n =
          std::min(most_drafted(active, room), static_cast<uint32_t>(drafted.size()));
      active.drafted.assign(drafted.begin(), drafted.begin() + n);
      n_rows += n;
      room -= n;
      continue;
    }
    const uint32_t most = most_drafted(active, room);
    const std::vector<uint32_t>& tokens = sequence_of(active).tokens;
    uint32_t n_unread = kNone;
    std::optional<ModelOffer> offer;
    if (active.draft != nullptr) n_unread = draft_model_->n_unread(*active.draft, tokens);
    if (n_unread <= DraftModel::kMostUnread) offer = offer_of(n_unread, n_model_rows);
    if (active.ahead) offer = head_->offer();
    const Speculator::Choice choice =
        active.speculator->choose(costs_, n_rows, n_expected, most, offer ? &*offer : nullptr);
    active.drafted.resize(choice.n_drafted);
    if (active.ahead) count_unused(active, choice);
    if (choice.is_of_model && active.draft == nullptr) {
      std::ranges::fill(active.drafted, *active.ahead);
      cut_refused(active);
    } else if (choice.is_of_model) {
      wishes.push_back({active.draft.get(), tokens,
                        static_cast<uint32_t>(active.task->chosen().size()), &active.drafted});
      for (uint32_t i = 0; i < choice.n_drafted; ++i) n_model_rows[i] += i == 0 ? n_unread : 1;
    } else {
      active.speculator->draft(active.drafted);
      cut_refused(active);
    }
    n_rows += choice.n_drafted;
    n_expected += choice.n_expected;
    room -= choice.n_drafted;
  }
  if (wishes.empty()) return;
  draft_model_->propose(wishes, actives.front().task->priority());
  for (Active& active : actives)
    if (active.speculator != nullptr && active.draft != nullptr &&
        active.speculator->was_of_model())
      cut_refused(active);
}

// A head whose tokens are not worth their rows for long does not run for this text any more: it costs as
// much as a layer, and the output.
void Composer::count_unused(Active& active, const Speculator::Choice& choice) {
  if (choice.n_drafted == 0) ++active.n_unused;
  if (choice.is_of_model) active.n_unused = 0;
  if (active.n_unused == kMostUnused) active.uses_head = false;
}

bool Composer::may_speculate(const Active& active) const {
  if (active.speculator == nullptr || !active.is_generating || active.waits) return false;
  if (!active.is_masked) return true;
  const TextMasks& masks = *active.task->masks();
  return masks.is_known() && masks.forced().empty() && masks.is_cheap();
}

// Tokens that a grammar refuses need no rows.
void Composer::cut_refused(Active& active) const {
  if (!active.is_masked || active.is_forced || active.drafted.empty()) return;
  const auto n_drafted = static_cast<uint32_t>(active.drafted.size());
  active.drafted.resize(active.task->masks()->constraint().n_allowed(active.drafted));
  if (active.drafted.empty()) active.speculator->checked(n_drafted, 0);
}

// Those for tokens that a constraint forces, and says which texts have masks. Returns the room that is
// left.
uint32_t Composer::draft_forced(std::span<Active> actives) const {
  uint32_t room = kMostDrafted;
  for (Active& active : actives) {
    active.drafted.clear();
    active.is_forced = false;
    active.is_masked = active.is_generating && !active.waits && active.task->is_constrained();
    if (!active.is_masked || room == 0) continue;
    if (!active.task->masks()->is_known()) continue;
    const std::span<const uint32_t> forced = active.task->masks()->forced();
    const uint32_t n = std::min(most_drafted(active, room), static_cast<uint32_t>(forced.size()));
    active.drafted.assign(forced.begin(), forced.begin() + n);
    active.is_forced = n > 0;
    room -= n;
  }
  return room;
}

uint32_t Composer::most_drafted(const Active& active, uint32_t room) const {
  const Task& task = *active.task;
  // The last token of a text is chosen and never fed back, so it needs no row.
  const uint32_t left = task.rows().max_chosen - static_cast<uint32_t>(task.chosen().size()) - 1;
  // Of drafted rows the first one holds, unless its mask comes late: then it runs again, too.
  const uint32_t refused = cache_.sequences.most_again() - active.is_masked;
  return std::min({room, left, refused,
                   cache_.sequences.covered(active.sequence) - sequence_of(active).n_done - 1});
}

void Composer::add_generating(std::span<Active> actives, Step& step) const {
  for (Active& active : actives) {
    if (!active.is_generating || active.waits) continue;
    active.n_rows = 1 + static_cast<uint32_t>(active.drafted.size());
    active.chooses = true;
    step.update(cache_.sequences.take_unsent(active.sequence));
    if (!active.drafted.empty() || active.log_lacks_last) {
      active.logged.assign(1, sequence_of(active).tokens.back());
      active.logged.insert(active.logged.end(), active.drafted.begin(), active.drafted.end());
      step.update(context_.sequences.log(active.sequence, sequence_of(active).n_done),
                  std::as_bytes(std::span(active.logged)));
    }
    active.log_lacks_last = !active.drafted.empty();
    active.first_row = active.drafted.empty()
                           ? step.add_generated(next_row(active), 1, Step::Logits::last, true)
                           : step.add_drafted(next_row(active), active.n_rows);
  }
}

// As many as fill kMaxFewRows: reading the weights for one row more or less costs the same.
void Composer::add_generated_before(std::span<Active> actives, Step& step) const {
  uint32_t room = kMaxFewRows - step.n_generated() % kMaxFewRows;
  for (Active& active : actives) {
    const Sequence& sequence = sequence_of(active);
    const bool has_some = sequence.n_done >= active.task->n_given() && !active.is_generating;
    if (!has_some || active.lacks_input || room == 0) continue;
    plan(active, std::min(room, static_cast<uint32_t>(sequence.tokens.size()) - sequence.n_done -
                                    active.waits));
    room -= active.n_rows;
  }
  add_planned(actives, step, false, false);
}

// Chunks run as they are or not at all. They come on top of the budget: who asks for them has few.
void Composer::plan_chunks(std::span<Active> actives, Room& room) const {
  for (Active& active : actives) {
    const TaskRows& rows = active.task->rows();
    if (rows.chunks.empty() || rows.whole || active.lacks_input) continue;
    const uint32_t chunk = rows.chunks[active.chunk];
    const uint32_t n_logits = sequence_of(active).n_done >= rows.first_output ? chunk - 1 : 0;
    uint32_t& of_kind = rows.generated ? room.generated : room.prompts;
    if (chunk > of_kind || n_logits > room.logits) continue;
    plan(active, chunk);
    of_kind -= chunk;
    room.logits -= n_logits;
  }
}

// The image that has this position, or the first one behind it.
const PlacedImage* Composer::image_from(const Active& active, uint32_t position) const {
  for (const PlacedImage& each : active.task->rows().images)
    if (each.end() > position) return &each;
  return nullptr;
}

const PlacedImage* Composer::image_at(const Active& active, uint32_t position) const {
  const PlacedImage* const next = image_from(active, position);
  return next != nullptr && next->first <= position ? next : nullptr;
}

const PlacedImage* Composer::first_unread_image(const Active& active) const {
  for (const PlacedImage& each : active.task->rows().images)
    if (each.image->vectors.empty() && sequence_of(active).n_done < each.end()) return &each;
  return nullptr;
}

const PlacedImage* Composer::image_without_keys(const Active& active) const {
  if (!context_.arch().images || !context_.arch().images->is.sees_later_rows) return nullptr;
  const PlacedImage* const next = image_at(active, sequence_of(active).n_done);
  return next != nullptr && active.n_with_keys < next->end() ? next : nullptr;
}

bool Composer::lacks_input(const Active& active) const {
  const std::shared_ptr<const SpeechWindow>& window = active.task->rows().window;
  return (window && cache_.windows.is_to_fill(window->id)) ||
         first_unread_image(active) != nullptr || image_without_keys(active) != nullptr;
}

PieceSize Composer::piece_size(std::span<const Active> actives, const Step& step) const {
  if (std::ranges::none_of(actives, &Active::is_generating))
    return {.seconds = kPieceSeconds, .least_rows = context_.sizes.max_prompt_rows};
  const double of_step = costs_.of(std::max(step.n_generated(), 1u));
  return {.seconds = kPieceSteps * of_step, .least_rows = 1};
}

// Texts of an encoder, in order: who does not fit in what is left of the step lets shorter ones pass,
// and comes first in a later one.
void Composer::plan_whole(std::span<Active> actives, Room& room) const {
  for (Active& active : actives) {
    const TaskRows& rows = active.task->rows();
    const uint32_t n_more = active.task->n_given() - rows.first_output - 1;
    if (!rows.whole || active.task->n_given() > room.prompts || n_more > room.logits) continue;
    plan(active, active.task->n_given());
    room.prompts -= active.task->n_given();
    room.logits -= n_more;
  }
}

// Half of the rows go to the most important prompts in order, so that none waits for ever; the other half to those of them that
// lack the fewest, so that a short prompt does not wait for the long one before it. Of many prompts of one length one after the
// other is done: were they all done together, each would wait for all. What is left goes to the others.
void Composer::plan_prompts(std::span<Active> actives, Room& room) const {
  const auto takes_part = [&](const Active& active) {
    const TaskRows& rows = active.task->rows();
    return rows.chunks.empty() && !rows.whole && !active.lacks_input && runs_prompt_kernels(active);
  };
  std::vector<Active*> first;  // the most important
  for (Active& active : actives) {
    if (!takes_part(active)) continue;
    const Task& task = *active.task;
    const uint32_t n_done = sequence_of(active).n_done;
    active.n_wanted = task.n_given() - n_done - active.waits;
    if (task.rows().max_chosen == 0 && n_done < task.rows().first_output) {
      active.n_wanted = task.rows().first_output - n_done;
    } else if (task.rows().max_chosen == 0) {
      active.n_wanted = std::min(active.n_wanted, 1 + room.logits);
      room.logits -= active.n_wanted - 1;
    }
    if (task.rows().scores_given) {
      active.n_wanted = std::min({active.n_wanted, 1 + room.logits, kLogprobPlaces});
      room.logits -= active.n_wanted - 1;
    }
    if (const PlacedImage* const next = image_from(active, n_done))
      active.n_wanted =
          std::min(active.n_wanted, (n_done < next->first ? next->first : next->end()) - n_done);
    if (first.empty() || task.priority() == first.front()->task->priority())
      first.push_back(&active);
  }
  const auto give = [&](Active& active, uint32_t most) {
    const uint32_t n = std::min({active.n_wanted - active.n_rows, most, room.prompts});
    plan(active, active.n_rows + n);
    room.prompts -= n;
  };
  const uint32_t of_others = room.prompts / 2;
  for (Active* active : first) give(*active, room.prompts - of_others);
  std::ranges::stable_sort(first, {},
                           [](const Active* active) { return active->n_wanted - active->n_rows; });
  for (Active* active : first) give(*active, UINT32_MAX);
  for (Active& active : actives)
    if (takes_part(active)) give(active, UINT32_MAX);
}

void Composer::plan(Active& active, uint32_t n_rows) const {
  const Task& task = *active.task;
  const Sequence& sequence = sequence_of(active);
  active.n_rows = n_rows;
  active.chooses = task.rows().max_chosen > 0 && sequence.n_done + n_rows == sequence.tokens.size();
  active.is_masked = active.chooses && task.is_constrained();
  active.scores_prompt = task.rows().scores_given && n_rows > 0 && runs_prompt_kernels(active);
  active.wants_logits = task.rows().max_chosen == 0 && n_rows > 0 &&
                        (task.rows().whole || sequence.n_done >= task.rows().first_output);
}

// Adds rows that were planned, of the kernels for prompts or of the others, of tasks that want
// their logits or of the others.
void Composer::add_planned(std::span<Active> actives, Step& step, bool prompts, bool logits) const {
  for (Active& active : actives) {
    const TaskRows& rows = active.task->rows();
    const bool takes_logits = rows.max_chosen == 0 && !rows.scores_given;
    if (active.n_rows == 0 || active.is_generating || takes_logits != logits ||
        runs_prompt_kernels(active) != prompts)
      continue;
    if (!active.is_known) {
      if (!step.update_sequence(active.sequence, active.task->choosing(), active.whole_log)) {
        active.n_rows = 0;  // in the next step
        active.chooses = active.wants_logits = active.is_masked = active.scores_prompt = false;
        continue;
      }
      active.is_known = true;
    }
    step.update(cache_.sequences.take_unsent(active.sequence));
    const bool is_pooled = rows.whole && rows.first_output > 0;
    const Step::Logits wanted = (active.wants_logits && !is_pooled) || active.scores_prompt
                                    ? Step::Logits::all
                                : active.chooses || is_pooled ? Step::Logits::last
                                                              : Step::Logits::none;
    active.first_row =
        prompts
            ? step.add_prompt(next_row(active), active.n_rows, wanted, active.chooses, rows.aligns)
            : step.add_generated(next_row(active), active.n_rows, wanted, active.chooses);
    if (!active.task->rows().chunks.empty()) ++active.chunk;
    const uint32_t n_done = sequence_of(active).n_done;
    if (const PlacedImage* const placed = image_at(active, n_done)) {
      const uint32_t dim = context_.arch().dim;
      const std::span<const float> vectors(placed->image->vectors);
      step.update(context_.vectors_of(active.first_row),
                  std::as_bytes(vectors.subspan(uint64_t{n_done - placed->first} * dim,
                                                uint64_t{active.n_rows} * dim)));
      give_rope_offsets(active, step.rows(active.first_row, active.n_rows));
    }
  }
}

Row Composer::next_row(const Active& active) const {
  const Task& task = *active.task;
  Row row{};
  row.sequence = active.sequence;
  row.position = sequence_of(active).n_done;
  row.draw = static_cast<uint32_t>(task.chosen().size());
  row.flags = active.is_masked ? kRowMasked : 0;
  if (const PlacedImage* const image = image_at(active, row.position)) {
    row.flags |= kRowVectorInput;
    if (context_.arch().images->is.sees_later_rows) row.kv_length = image->end();
  }
  give_rope_offsets(active, {&row, 1});
  row.adapter = task.choosing().adapters;
  const bool is_given = row.position < task.n_given();
  if (task.rows().scores_chosen || (task.rows().scores_given && is_given)) row.flags |= kRowScored;
  row.pool = task.rows().pool;
  row.second_segment = task.rows().second_segment;
  row.last_position = task.rows().max_chosen > 0 ? most_positions(task) - 1 : kNone;
  return row;
}

// Rows of an image each have others; rows of text after an image have the same.
void Composer::give_rope_offsets(const Active& active, std::span<Row> rows) const {
  const std::vector<PlacedImage>& images = active.task->rows().images;
  if (images.empty() || !context_.arch().images->is.has_text_axes) return;
  for (Row& row : rows)
    std::ranges::copy(rope_offsets(*context_.arch().images, images, row.position),
                      row.rope_offsets);
}

}  // namespace akunu
