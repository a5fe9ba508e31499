#include "inference/results.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <string>

#include "core/error.h"

namespace akunu {

Results::Results(Context& context, const Programs& programs, SequenceCache& cache,
                 uint32_t most_steps, PredictionHead* head)
    : context_(context),
      programs_(programs),
      cache_(cache),
      head_(head),
      tokens_(std::max(most_steps, kMaxFewRows)),
      logprobs_(kLogprobPlaces) {}

Results::State Results::take(Active& active, const Step& step, uint32_t n_steps,
                             std::span<const Status> statuses) {
  if (active.n_rows == 0) return State::goes_on;
  const uint32_t n_before = context_.sequences[active.sequence].n_done;
  const auto own = statuses.empty() ? statuses : statuses.subspan(active.first_row, active.n_rows);
  if (active.is_late) {
    const State state = take_late(active, own);
    cache_.sequences.ran(active.sequence, n_before + active.n_rows);
    return state;
  }
  if (!active.drafted.empty()) return take_drafted(active, own);
  const auto bad =
      std::ranges::find_if(own, [](const Status& status) { return status.code != kStatusOk; });
  if (bad == own.end()) return take_good(active, step, n_steps);
  // A row that generates was well for as many steps as it has moved on.
  const uint32_t n_done = context_.sequences[active.sequence].n_done;
  const uint32_t n_well = active.is_generating ? bad->position - n_done : 0;
  if (n_well > 0 && take_good(active, step, n_well) == State::is_over) return State::is_over;
  return fail(active, *bad);
}

Results::State Results::fail(Active& active, const Status& status) {
  const std::string what = describe(status, context_.cache);
  if (active.is_masked && status.code == kStatusNoCandidate)
    active.task->fail(std::make_exception_ptr(
        DeadEndError(what + " that the grammar allows and logit_bias does not ban")));
  else
    active.task->fail(std::make_exception_ptr(DeviceError(what)));
  return State::is_bad;
}

Results::State Results::take_good(Active& active, const Step& step, uint32_t n_steps) {
  Task& task = *active.task;
  const Sequence& sequence = context_.sequences[active.sequence];
  const uint32_t first = sequence.n_done;
  if (!active.is_generating) cache_.sequences.done(active.sequence, first + active.n_rows);
  // A later request with the same prompt can continue from here.
  if (sequence.n_done == sequence.n_prompt)
    static_cast<void>(cache_.sequences.checkpoint(active.sequence));
  if (active.wants_logits && task.rows().behind == kNone) {
    // A whole text has its outputs from the first one on, others have one for every row.
    const uint32_t n_before = task.rows().whole ? task.rows().first_output : 0;
    const uint64_t row = step.head_row(active.first_row + n_before);
    Binding outputs = task.rows().aligns ? context_.alignment.binding() : programs_.logits;
    const uint32_t width =
        task.rows().aligns ? context_.sizes.alignment_width : context_.weights->output_width();
    outputs.offset += row * width * sizeof(float);
    context_.device->read(outputs, std::as_writable_bytes(
                                       task.logits_of(first + n_before, active.n_rows - n_before)));
  }
  if (active.scores_prompt)
    task.take_given_logprobs(first, read_logprobs(active.sequence, first, active.n_rows));
  task.set_given_done(sequence.n_done);
  if (active.chooses) return take_chain(active, n_steps);
  if (task.rows().max_chosen > 0 || sequence.n_done < task.n_given()) return State::goes_on;
  if (task.rows().behind != kNone) return State::is_over;  // whose outputs come behind the step
  task.take_positions(cache_.copies, active.sequence);
  task.finish(FinishReason::length);
  return State::is_over;
}

// The rows that choose ran without a mask: what they chose is not used, and they run again.
Results::State Results::take_late(Active& active, std::span<const Status> statuses) {
  if (active.is_generating) return State::goes_on;
  const uint32_t n = active.n_rows - 1;
  for (uint32_t i = 0; i < n && !statuses.empty(); ++i)
    if (statuses[i].code != kStatusOk) return fail(active, statuses[i]);
  if (n == 0) return State::goes_on;
  const uint32_t first = context_.sequences[active.sequence].n_done;
  cache_.sequences.done(active.sequence, first + n);
  if (active.scores_prompt)
    active.task->take_given_logprobs(first, read_logprobs(active.sequence, first, n));
  active.task->set_given_done(first + n);
  return State::goes_on;
}

// Reads the tokens of all steps of a submission from the log at once. Where the text ended before the
// last step, the rest is old memory: it is behind the stop token or max_chosen, and is not used.
Results::State Results::take_chain(Active& active, uint32_t n_steps) {
  const Task& task = *active.task;
  const Sequence& sequence = context_.sequences[active.sequence];
  const auto n_before = static_cast<uint32_t>(task.chosen().size());
  const std::span tokens =
      std::span(tokens_).first(std::min(n_steps, task.rows().max_chosen - n_before));
  context_.device->read(
      context_.sequences.log(active.sequence, static_cast<uint32_t>(sequence.tokens.size())),
      std::as_writable_bytes(tokens));
  return take_tokens(active, tokens);
}

// Each row has chosen what it would have chosen alone, as long as the rows before chose what was
// drafted: the first that did not ends what is used.
Results::State Results::take_drafted(Active& active, std::span<const Status> statuses) {
  const std::span tokens = std::span(tokens_).first(active.n_rows);
  Binding picked = context_.picked.binding();
  picked.offset += active.first_row * sizeof(uint32_t);
  context_.device->read(picked, std::as_writable_bytes(tokens));
  uint32_t n = 0;
  while (true) {
    if (!statuses.empty() && statuses[n].code != kStatusOk) {
      if (n > 0 && take_tokens(active, tokens.first(n)) == State::is_over) return State::is_over;
      return fail(active, statuses[n]);
    }
    if (n == active.drafted.size() || tokens[n] != active.drafted[n]) break;
    ++n;
  }
  if (active.speculator != nullptr && !active.is_forced) {
    const auto n_drafted = static_cast<uint32_t>(active.drafted.size());
    active.speculator->checked(n_drafted, n);
    if (active.speculator->was_of_model() && active.draft != nullptr)
      active.draft->checked(n_drafted, n);
    else if (active.speculator->was_of_model())
      head_->checked(n_drafted, n);
    active.task->count_drafted(n_drafted, n);
    n_drafted_ += n_drafted;
    n_held_ += n;
  }
  return take_tokens(active, tokens.first(n + 1));
}

// Where the text ended before the last of these, the rest is not used.
Results::State Results::take_tokens(Active& active, std::span<const uint32_t> tokens) {
  Task& task = *active.task;
  Sequence& sequence = context_.sequences[active.sequence];
  const uint32_t n_before = sequence.n_done;
  const SequenceRecord& record = task.choosing().record;
  const std::span stops(record.stop_ids, record.n_stop_ids);
  const auto end = std::ranges::find_first_of(tokens, stops);
  const auto before_stop = tokens.first(static_cast<size_t>(end - tokens.begin()));
  const auto taken = before_stop.first(n_accepted(active, before_stop));
  const bool is_stopped = end != tokens.end() && taken.size() == before_stop.size();
  // Behind those of the tokens, that of the one that stopped the text.
  if (const auto n = static_cast<uint32_t>(taken.size() + is_stopped);
      task.rows().scores_chosen && n > 0)
    task.take_logprobs(
        read_logprobs(active.sequence, static_cast<uint32_t>(sequence.tokens.size()) - 1, n));
  sequence.tokens.insert(sequence.tokens.end(), taken.begin(), taken.end());
  if (active.speculator != nullptr) active.speculator->add(taken);
  if (active.is_generating)
    cache_.sequences.done(active.sequence,
                          n_before + static_cast<uint32_t>(taken.size()) + is_stopped);
  if (active.is_generating)
    cache_.sequences.ran(active.sequence,
                         n_before + std::max(static_cast<uint32_t>(tokens.size()), active.n_rows));
  if (!taken.empty()) task.take_tokens(taken);
  TextMasks* const masks = task.masks();
  if (masks != nullptr) masks->forget();
  const Constraint* const constraint = masks != nullptr ? &masks->constraint() : nullptr;
  if (constraint != nullptr && !constraint->error().empty())
    task.fail(constraint->is_too_dear()
                  ? std::make_exception_ptr(GrammarLimitError(constraint->error()))
                  : std::make_exception_ptr(DeadEndError(constraint->error())));
  else if (taken.empty() && !is_stopped)
    task.fail(std::make_exception_ptr(DeadEndError("a token was chosen that may not follow")));
  else if (is_stopped || (constraint != nullptr && constraint->is_over()))
    task.finish(FinishReason::stop);
  else if (task.chosen().size() == task.rows().max_chosen)
    finish_at_length(active);
  else
    return State::goes_on;
  return State::is_over;
}

// Where it is the context that is full, the text may go on.
void Results::finish_at_length(const Active& active) {
  Task& task = *active.task;
  const Sequence& sequence = context_.sequences[active.sequence];
  if (task.rows().keeps_positions && sequence.tokens.size() > context_.n_positions()) {
    try {
      task.take_positions(cache_.copies, active.sequence);
    } catch (const std::bad_alloc&) {
      return task.fail(std::make_exception_ptr(OutOfMemoryError(
          "there is no memory for keys and values of " + std::to_string(sequence.n_done) +
          " tokens beside the cache, with which a text goes "
          "on whose context is full")));
    }
  }
  task.finish(FinishReason::length);
}

// How many of these tokens its constraint takes. Those behind a place where it begins to rule were
// chosen without its mask, and are chosen again; behind its end there are none.
uint32_t Results::n_accepted(const Active& active, std::span<const uint32_t> tokens) {
  if (active.task->masks() == nullptr) return static_cast<uint32_t>(tokens.size());
  Constraint& constraint = active.task->masks()->constraint();
  uint32_t n = 0;
  if (!constraint.error().empty()) return 0;  // it could not fill the mask
  while (n < tokens.size() && !constraint.is_over() && (active.is_masked || constraint.is_free()) &&
         constraint.accept(tokens[n]))
    ++n;
  return n;
}

std::span<const TokenLogprobs> Results::read_logprobs(uint32_t slot, uint32_t position,
                                                      uint32_t n) {
  assert(n <= kLogprobPlaces);
  const std::span all = std::span(logprobs_).first(n);
  const uint32_t place = position % kLogprobPlaces;
  const uint32_t n_before_end = std::min(n, kLogprobPlaces - place);
  const auto read = [&](uint32_t from, std::span<TokenLogprobs> into) {
    if (!into.empty())
      context_.device->read(context_.sequences.logprobs(slot, from), std::as_writable_bytes(into));
  };
  read(place, all.first(n_before_end));
  read(0, all.subspan(n_before_end));
  return all;
}

}  // namespace akunu
