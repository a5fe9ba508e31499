#include "inference/results.h"

#include <algorithm>

namespace akunu {

Results::Results(Model& model, SequenceCache& cache, uint32_t most_steps)
    : model_(model), cache_(cache), tokens_(most_steps) {}

bool Results::take(Active& active, const Step& step, uint32_t n_steps) {
  if (active.n_rows == 0) return true;
  Task& task = *active.task;
  const Sequence& sequence = model_.sequences()[active.sequence];
  const uint32_t first = sequence.n_done;
  if (!active.is_generating) cache_.done(active.sequence, first + active.n_rows);
  if (active.wants_logits) {
    const uint64_t row = step.head_row(active.first_row);
    Binding logits = model_.logits();
    logits.offset += row * model_.arch().vocab_size * sizeof(float);
    model_.device().read(logits, std::as_writable_bytes(task.logits_of(first, active.n_rows)));
  }
  task.set_given_done(sequence.n_done);
  const bool goes_on = !active.chooses || take_tokens(active, n_steps);
  if (goes_on && (task.rows().max_chosen > 0 || sequence.n_done < task.n_given())) return true;
  if (goes_on) task.finish(FinishReason::length);
  return false;
}

// One read per submission, however many steps it had. What lies in the log behind the token that
// ended the text was never written.
bool Results::take_tokens(Active& active, uint32_t n_steps) {
  Task& task = *active.task;
  Sequence& sequence = model_.sequences()[active.sequence];
  const auto n_before = static_cast<uint32_t>(task.chosen().size());
  const std::span tokens =
      std::span(tokens_).first(std::min(n_steps, task.rows().max_chosen - n_before));
  model_.device().read(
      model_.sequences().log(active.sequence, static_cast<uint32_t>(sequence.tokens.size())),
      std::as_writable_bytes(tokens));
  const std::span stops(task.record().stop_ids, task.record().n_stop_ids);
  const auto end = std::ranges::find_first_of(tokens, stops);
  const bool is_stopped = end != tokens.end();
  const auto taken = tokens.first(static_cast<size_t>(end - tokens.begin()));
  sequence.tokens.insert(sequence.tokens.end(), taken.begin(), taken.end());
  if (active.is_generating)
    cache_.done(active.sequence,
                sequence.n_done + static_cast<uint32_t>(taken.size()) + is_stopped);
  if (!taken.empty()) task.take_tokens(taken);
  if (is_stopped)
    task.finish(FinishReason::stop);
  else if (task.chosen().size() == task.rows().max_chosen)
    task.finish(FinishReason::length);
  else
    return true;
  return false;
}

}  // namespace akunu
