// Who gets a place, and who loses it.
//
// 1. What it does. `admit` begins a sequence for a task that waited, with what the cache has of its prompt. `grow` takes
//    the pages that the next submission needs; where there are none left, a text steps back and waits again.
// 2. What bounds it. The host between two steps; see scheduler.cpp.
// 3. Where to change it. Who waits for a prefix that is being computed: `waits_for_prefix`. Who steps back when pages
//    are short: `first_to_go`.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "inference/moved_text.h"
#include "inference/scheduler.h"
#include "inference/speech_window.h"

namespace akunu {

Queue::Answer Scheduler::admit(const std::shared_ptr<Task>& task) {
  const TaskRows& rows = task->rows();
  if (const SavedPositions* const saved = task->restores()) {
    task->set_cached(cache_.copies.restore(task->arrival, key_of(*task), rows.tokens, *saved));
    task->finish(FinishReason::length);
    return Queue::Answer::taken;
  }
  if (active_.size() == model_.context.sizes.max_texts) return Queue::Answer::full;
  if (!model_.context.adapters.get()->have(
          rows.adapters)) {  // it came while the adapter was unloaded
    task->fail(std::make_exception_ptr(ArgumentError("an adapter of the text was unloaded")));
    return Queue::Answer::taken;
  }
  std::vector<uint32_t> tokens = rows.tokens;  // and those chosen before it stepped back, if it did
  tokens.insert(tokens.end(), task->chosen().begin(), task->chosen().end());
  const MovedPositions* const moved = task->moved();
  if (moved == nullptr && waits_for_prefix(*task)) return Queue::Answer::later;
  const auto n_tokens = static_cast<uint32_t>(tokens.size());
  // One position more than there are tokens: if the next token finds no page, the text must step back.
  const uint32_t n_positions = std::min(n_tokens + 1, most_positions(*task));
  const bool is_scored = !rows.scores_given || task->n_scored() >= task->n_given();
  const uint32_t most_reused = !rows.chunks.empty() || rows.whole ? 0
                               : !is_scored                       ? task->n_scored()
                               : rows.max_chosen > 0              ? n_tokens
                                                                  : rows.first_output;
  const Beginning beginning{.id = task->arrival,
                            .key = key_of(*task),
                            .tokens = tokens,
                            .n_prompt = rows.n_prompt(),
                            .n_positions = n_positions,
                            .most_reused = most_reused,
                            .shares_with = rows.shares_with,
                            .moved = moved};
  if (moved == nullptr && waits_for_disk(task, beginning)) return Queue::Answer::later;
  const RunsOnDisk* const from_disk = moved == nullptr ? fetched_for(task) : nullptr;
  const std::optional<uint32_t> sequence = cache_.sequences.begin(beginning, from_disk);
  if (!sequence) return Queue::Answer::full;
  if (moved != nullptr)
    turn_keys(model_.context, model_.programs.rotations, cache_.sequences, *moved, *sequence);
  const Sequence& begun = model_.context.sequences[*sequence];
  if (from_disk != nullptr) {
    disk()->count_restored(begun.n_from_disk);
    fetch_.reset();
  }
  const uint32_t n_cached = begun.n_done;
  if (task->chosen().empty()) {
    task->set_cached(n_cached);
    task->set_prefix_end(begun.prefix_end);
  }
  task->set_given_done(n_cached);
  const auto place = std::ranges::find_if(
      active_, [&](const Active& other) { return goes_before(*task, *other.task); });
  Active active{.task = task, .sequence = *sequence};
  if (!rows.images.empty()) {
    active.whole_log = tokens;
    std::ranges::replace_if(active.whole_log, is_of_image, model_.context.arch().images->is.token);
  }
  if (rows.speculation != kSpeculationOff)
    active.speculator =
        std::make_unique<Speculator>(rows.images.empty() ? tokens : active.whole_log,
                                     rows.speculation, most_positions(*task) + 1);
  if (active.speculator != nullptr && draft_model_ != nullptr && rows.window == nullptr &&
      rows.images.empty()) {
    active.draft = draft_model_->begin(*task, tokens);
    active.speculator->begin_model(draft_model_->held());
  }
  // Where the text has masks, one row less may run again.
  const bool has_masks = task->masks() != nullptr;
  if (active.speculator != nullptr && head_ != nullptr && active.draft == nullptr &&
      cache_.sequences.most_again() > has_masks) {
    active.uses_head = true;
    active.speculator->begin_model(head_->held());
  }
  active_.insert(place, std::move(active));
  recompose_ = true;
  return Queue::Answer::taken;
}

PrefixKey Scheduler::key_of(const Task& task) const {
  const std::shared_ptr<const SpeechWindow>& window = task.rows().window;
  return {.format = model_.context.cache.format(),
          .adapters = task.rows().adapters,
          .window = window ? window->id : 0};
}

// A prompt that is being computed and begins like this one, by a page or more, is worth waiting
// for: what they share is computed once.
bool Scheduler::waits_for_prefix(const Task& task) const {
  if (task.rows().shares_with != 0 && !task.rows().scores_given)
    for (const Active& active : active_)
      if (active.task->arrival == task.rows().shares_with)
        return model_.context.sequences[active.sequence].n_done < active.task->n_given();
  if (!prefix_cache_ || !task.rows().chunks.empty() || task.rows().scores_given) return false;
  const std::vector<uint32_t>& prompt = task.rows().tokens;
  const PrefixKey key = key_of(task);
  return std::ranges::any_of(active_, [&](const Active& active) {
    const Sequence& other = model_.context.sequences[active.sequence];
    if (other.n_done >= other.n_prompt || Composer::waits_for_masks(active)) return false;
    if (other.key != key) return false;
    const auto n_alike =
        std::ranges::mismatch(prompt, active.task->rows().tokens).in1 - prompt.begin();
    return n_alike >= kPagePositions && n_alike > other.n_done;
  });
}

// Takes the pages that the next submission needs, for the most important text first. Where there are
// none left, the least important one steps back: it gives up its place and waits in the queue again.
void Scheduler::grow() {
  for (size_t i = 0; i < active_.size();) {
    if (grow(active_[i])) {
      ++i;
      continue;
    }
    if (active_.size() == 1) throw Error("the cache has no room for one text alone");
    step_back(first_to_go());
    i = 0;
  }
}

bool Scheduler::grow(const Active& active) {
  const ChipConfig& chip = model_.context.device->chip();
  const Sequence& sequence = model_.context.sequences[active.sequence];
  const bool is_generating = composer_.is_generating(active);
  const uint32_t n_positions =
      is_generating ? std::min(sequence.n_done + chain_steps_ * (1 + chip.submissions_ahead),
                               most_positions(*active.task))
                    : std::min(sequence.n_done + model_.context.sizes.max_rows_in_flight,
                               static_cast<uint32_t>(sequence.tokens.size()));
  if (!cache_.sequences.extend(active.sequence, n_positions)) return false;
  recompose_ |= is_generating && cache_.sequences.has_unsent(active.sequence);
  return true;
}

// The least important text that generates. Tasks that only compute logits are over soon and would have
// to begin again, so they step back only where nothing else is left.
std::vector<Active>::iterator Scheduler::first_to_go() {
  const auto last = std::ranges::find_if(active_.rbegin(), active_.rend(), [](const Active& other) {
    return other.task->rows().max_chosen > 0;
  });
  return last == active_.rend() ? active_.end() - 1 : last.base() - 1;
}

void Scheduler::step_back(std::vector<Active>::iterator active) {
  if (active->task->rows().has_output()) {
    if (active->task->moved() == nullptr)
      cache_.sequences.set_aside(active->sequence);
    else
      cache_.sequences.discard(active->sequence);  // it begins again with what was moved
    queue_.put_back(std::move(active->task));
  } else {  // a reading: the rest of its text stays unread
    cache_.sequences.end(active->sequence, kNone);
  }
  active_.erase(active);
  recompose_ = true;
  room_changed_ |= active_.empty();
}

}  // namespace akunu
