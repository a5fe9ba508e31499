// What the prediction head runs. prediction_head.h says why.
//
// 1. What it does. `plan` takes of each text the rows that count and whose next token is known: of a prompt all, of a text
//    that generates those whose drafts held, and of a row that chose the token chosen. One submission runs them all;
//    `take` reads what it chose behind a text's last row, with the request's own options and draws.
// 2. What bounds it. Reading one layer's weights, and those of the output where tokens are drafted.
// 3. What must hold. The rows of the step are as they were composed, and no other step has run since.
#include "inference/prediction_head.h"

#include <algorithm>
#include <chrono>

namespace akunu {
namespace {

constexpr double kHeadNew = 0.25;      // weight of a new measurement of time
constexpr double kHeadNewHeld = 0.02;  // weight of one more token that held, or did not

}  // namespace

double PredictionHead::run(std::span<Active> actives, Step& step) {
  planned_.clear();
  step.begin_ahead();
  for (Active& active : actives) plan(active, step);
  const auto began = std::chrono::steady_clock::now();
  double seconds = 0;
  if (step.has_ahead()) {
    const bool is_generated = step.n_generated() == step.n_rows();
    const Outcome outcome =
        await(context_, step.submit_ahead(*context_.device, actives.front().task->priority()));
    for (const Planned& planned : planned_) take(planned, step, outcome.statuses);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (is_generated)
      seconds_ = seconds_ == 0 ? seconds
                               : seconds_ + kHeadNew * (std::min(seconds, 4 * seconds_) - seconds_);
  }
  return seconds;
}

void PredictionHead::plan(Active& active, Step& step) {
  if (active.n_rows == 0) return;
  active.ahead.reset();
  const TaskRows& rows = active.task->rows();
  const bool wants_logits = rows.behind != kNone;
  const bool is_prompt = (step.row(active.first_row).flags & kRowPrompt) != 0;
  if (active.is_bad || (!is_prompt && !active.uses_head && !wants_logits)) return;
  const Sequence& sequence = context_.sequences[active.sequence];
  const auto n_tokens = static_cast<uint32_t>(sequence.tokens.size());
  const uint32_t first = step.row(active.first_row).position;
  const uint32_t n_known = n_tokens + wants_logits;
  const uint32_t end = std::min({first + active.n_rows, sequence.n_done, n_known - 1});
  if (end <= first) return;
  // The device's log lacks a token that was chosen last in some steps.
  const std::span<const uint32_t> last =
      end < n_tokens ? std::span(sequence.tokens).subspan(end, 1) : std::span(&rows.behind, 1);
  step.update(context_.sequences.log(active.sequence, end), std::as_bytes(last));
  const bool drafts = active.uses_head && !active.is_over && end + 1 == n_tokens &&
                      sequence.n_done == end && n_tokens > active.task->n_given();
  const uint32_t draw = static_cast<uint32_t>(active.task->chosen().size());
  for (uint32_t position = first; position < end; ++position)
    step.add_ahead(active.first_row + position - first,
                   drafts && position + 1 == end ? draw : kNone,
                   wants_logits && position >= rows.first_output);
  const uint32_t from = wants_logits ? std::max(first, rows.first_output) : end - 1;
  if (from < end && (wants_logits || drafts))
    planned_.push_back({&active, from, active.first_row + from - first, end - from, drafts});
  else if (wants_logits)
    planned_.push_back({&active, end, active.first_row, 0, false});
}

void PredictionHead::take(const Planned& planned, const Step& step,
                          std::span<const Status> statuses) {
  Active& active = *planned.active;
  const auto is_well = [&](uint32_t row) {
    return statuses.empty() || statuses[row].code == kStatusOk;
  };
  if (planned.drafts) {
    const uint32_t row = planned.first_row + planned.n_rows - 1;
    uint32_t token = 0;
    Binding picked = context_.picked.binding();
    picked.offset += row * sizeof(uint32_t);
    context_.device->read(picked, std::as_writable_bytes(std::span(&token, 1)));
    if (is_well(row)) active.ahead = token;
    return;
  }
  if (planned.n_rows > 0) {
    Binding logits = programs_.logits;
    logits.offset += uint64_t{step.head_row(planned.first_row)} * context_.weights->output_width() *
                     sizeof(float);
    context_.device->read(logits, std::as_writable_bytes(active.task->logits_of(
                                      planned.first_position, planned.n_rows)));
  }
  if (active.is_over) active.task->finish(FinishReason::length);
}

void PredictionHead::checked(uint32_t n_drafted, uint32_t n_held) {
  for (uint32_t i = 0; i < n_held; ++i) held_ += kHeadNewHeld * (1 - held_);
  if (n_held < n_drafted) held_ -= kHeadNewHeld * held_;
}

}  // namespace akunu
