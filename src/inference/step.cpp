#include "inference/step.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

constexpr auto kForever = std::chrono::hours(24);

// "65504, the largest number of an f16"; scales of blocks are halves.
std::string largest_of(Format cache) {
  const std::string name(format_info(cache).name);
  return cache == Format::f16 ? "65504, the largest number of an f16"
                              : "the largest scale of a " + name;
}

}  // namespace

Step::Step(const Context& context, const Programs& programs)
    : context_(context), programs_(programs) {
  const SubmissionLimits& limits = context.submission_limits;
  rows_.reserve(limits.max_rows);
  spans_.reserve(limits.max_rows);
  updates_.reserve(limits.max_updates);
  passes_.reserve(limits.max_passes);
  generated_.reserve(limits.max_passes);
}

void Step::clear() {
  rows_.clear();
  spans_.clear();
  updates_.clear();
  sequence_bytes_ = 0;
  generated_.clear();
  prompt_ = {};
  n_generated_ = n_head_rows_ = 0;
  n_generated_choosing_ = n_prompt_choosing_ = 0;
  has_scored_ = false;
  n_ahead_ = 0;
}

void Step::update(const Binding& destination, std::span<const std::byte> bytes) {
  assert(updates_.size() < updates_.capacity());
  updates_.push_back({destination, bytes});
}

void Step::update(std::span<const Update> updates) {
  for (const Update& each : updates) update(each.destination, each.bytes);
}

bool Step::update_sequence(uint32_t sequence, const Choosing& choosing,
                           std::span<const uint32_t> log) {
  const size_t n_tokens = log.empty() ? context_.sequences[sequence].tokens.size() : log.size();
  const uint64_t n_bytes =
      sizeof choosing.record + (choosing.options.size() + n_tokens) * sizeof(uint32_t);
  if (sequence_bytes_ + n_bytes > context_.sequence_update_bytes()) return false;
  sequence_bytes_ += n_bytes;
  append_sequence(context_, sequence, choosing, log, updates_);
  return true;
}

uint32_t Step::add_generated(const Row& first, uint32_t n_rows, Logits logits, bool choose) {
  assert(prompt_.n_rows == 0);
  const auto first_index = static_cast<uint32_t>(rows_.size());
  const uint32_t most = programs_.generated_rows_per_pass();
  Row row = first;
  for (uint32_t left = n_rows; left > 0;) {
    // A pass has one span of a sequence.
    if (left < n_rows || generated_.empty() || generated_.back().n_rows == most)
      generated_.emplace_back();
    Run& group = generated_.back();
    const uint32_t n = std::min({left, most - group.n_rows, kMaxFewRows});
    const bool last = n == left;
    add_rows(group, row, n, last || logits == Logits::all ? logits : Logits::none, last && choose);
    group.generates = true;
    row.position += n;
    left -= n;
  }
  n_generated_ += n_rows;
  if (choose) n_generated_choosing_ = n_generated_;
  return first_index;
}

uint32_t Step::add_drafted(const Row& first, uint32_t n_rows) {
  const uint32_t first_index = add_generated(first, n_rows, Logits::all, false);
  for (uint32_t i = 0; i < n_rows; ++i) rows_[first_index + i].draw = first.draw + i;
  n_generated_choosing_ = n_generated_;
  return first_index;
}

uint32_t Step::add_prompt(const Row& first, uint32_t n_rows, Logits logits, bool choose,
                          bool align) {
  const auto first_index = static_cast<uint32_t>(rows_.size());
  Row row = first;
  row.flags |= kRowPrompt;
  add_rows(prompt_, row, n_rows, logits, choose);
  prompt_.is_aligned |= align;
  if (choose || (rows_.back().flags & kRowScored) != 0) n_prompt_choosing_ = prompt_.n_rows;
  return first_index;
}

// A span of its own, even where the sequence's rows go on from the group before.
void Step::add_rows(Run& run, const Row& first, uint32_t n_rows, Logits logits, bool choose) {
  assert(rows_.size() + n_rows <= rows_.capacity());
  if (run.n_rows == 0)
    run = {.first_row = static_cast<uint32_t>(rows_.size()),
           .first_head_row = n_head_rows_,
           .first_span = static_cast<uint32_t>(spans_.size())};
  const auto span = static_cast<uint32_t>(spans_.size());
  spans_.push_back({first.sequence, static_cast<uint32_t>(rows_.size()), n_rows, 0});
  for (uint32_t i = 0; i < n_rows; ++i) {
    const bool last = i + 1 == n_rows;
    Row row = first;
    row.position = first.position + i;
    if (first.kv_length == 0) row.kv_length = row.position + 1;
    row.flags |= kRowActive | (last && choose ? kRowChained : 0);
    row.span = span;
    row.head_row =
        logits == Logits::all || (last && logits == Logits::last) ? n_head_rows_++ : kNone;
    if (row.head_row == kNone) row.flags &= ~kRowScored;
    has_scored_ |= (row.flags & kRowScored) != 0;
    rows_.push_back(row);
  }
  run.n_rows += n_rows;
  run.is_adapted |= first.adapter != kNone;
  run.n_head_rows = n_head_rows_ - run.first_head_row;
  ++run.n_spans;
}

Ticket Step::submit(Device& device, uint32_t steps, bool go_on, int32_t priority) {
  Replay replay = make_replay(Part::all, go_on);
  replay.steps = steps;
  replay.priority = priority;
  return device.submit(replay);
}

Ticket Step::submit_logits(Device& device, bool go_on, int32_t priority) {
  Replay replay = make_replay(Part::logits, go_on);
  replay.priority = priority;
  const Ticket ticket = device.submit(replay);
  updates_.clear();
  return ticket;
}

Ticket Step::submit_choice(Device& device, int32_t priority) {
  Replay replay = make_replay(Part::choice, true);
  replay.priority = priority;
  return device.submit(replay);
}

Ticket Step::submit_program(Device& device, Program program) {
  passes_.clear();
  add_pass(program, prompt_);
  const Ticket ticket = device.submit(replay_of_passes());
  updates_.clear();
  return ticket;
}

void Step::begin_ahead() {
  updates_.clear();
  n_ahead_ = 0;
  n_generated_choosing_ = n_prompt_choosing_ = 0;
  for (Row& row : rows_) {
    row.flags &= kRowPrompt;
    row.head_row = kNone;
  }
}

void Step::add_ahead(uint32_t row, uint32_t draw, bool wants_logits) {
  rows_[row].flags |= kRowActive;
  ++n_ahead_;
  if (wants_logits || draw != kNone) rows_[row].head_row = 0;  // numbered by submit_ahead
  if (draw == kNone) return;
  rows_[row].draw = draw;
  if (row < n_generated_)
    n_generated_choosing_ = std::max(n_generated_choosing_, row + 1);
  else
    n_prompt_choosing_ = std::max(n_prompt_choosing_, row + 1 - n_generated_);
}

Ticket Step::submit_ahead(Device& device, int32_t priority) {
  passes_.clear();
  n_head_rows_ = 0;
  const auto number = [&](Run& run) {
    run.first_head_row = n_head_rows_;
    for (Row& row : std::span(rows_).subspan(run.first_row, run.n_rows))
      if (row.head_row != kNone) row.head_row = n_head_rows_++;
    run.n_head_rows = n_head_rows_ - run.first_head_row;
    return std::ranges::any_of(std::span(rows_).subspan(run.first_row, run.n_rows),
                               [](const Row& row) { return (row.flags & kRowActive) != 0; });
  };
  std::vector<std::pair<RowClass, Run>> runs;
  for (Run& group : generated_)
    if (number(group))
      runs.emplace_back(group.n_rows == 1 ? RowClass::single : RowClass::few, group);
  if (prompt_.n_rows > 0 && number(prompt_)) runs.emplace_back(RowClass::many, prompt_);
  for (const auto& [row_class, run] : runs) add_pass(programs_.ahead.of(row_class).body, run);
  for (const auto& [row_class, run] : runs)
    if (run.n_head_rows > 0) add_pass(programs_.ahead.of(row_class).logits, run);
  add_choices(programs_.ahead.choose);
  Replay replay = replay_of_passes();
  replay.priority = priority;
  const Ticket ticket = device.submit(replay);
  updates_.clear();
  return ticket;
}

// Over the rows that choose: of those that generate, and of prompts.
void Step::add_choices(Program program) {
  for (const auto& [first_row, n_rows] :
       {std::pair(0u, n_generated_choosing_), std::pair(n_generated_, n_prompt_choosing_)})
    if (n_rows > 0)
      add_pass(program, {.first_row = first_row,
                         .n_rows = n_rows,
                         .first_head_row = 0,
                         .n_head_rows = n_head_rows_,
                         .first_span = 0,
                         .n_spans = static_cast<uint32_t>(spans_.size()),
                         .generates = first_row == 0});
}

std::vector<CommandTime> Step::profile(Device& device) {
  return device.profile(make_replay(Part::all, false));
}

void Step::add_pass(Program program, const Run& run) {
  assert(passes_.size() < passes_.capacity());
  passes_.push_back({program, run.first_row, run.n_rows, run.first_head_row, run.n_head_rows,
                     run.first_span, run.n_spans, run.generates});
}

Replay Step::make_replay(Part part, bool go_on) {
  const auto class_of = [](const Run& group) {
    return group.n_rows == 1 ? RowClass::single : RowClass::few;
  };
  passes_.clear();
  if (part != Part::choice) {
    for (const Run& group : generated_)
      add_pass(programs_.body(class_of(group), group.is_adapted), group);
    if (prompt_.n_rows > 0)
      add_pass(prompt_.is_aligned ? programs_.aligned
                                  : programs_.body(RowClass::many, prompt_.is_adapted),
               prompt_);
    for (const Run& group : generated_)
      if (group.n_head_rows > 0) add_pass(programs_.of(class_of(group)).logits, group);
    if (prompt_.n_head_rows > 0) add_pass(programs_.of(RowClass::many).logits, prompt_);
  }
  if (part != Part::logits) add_choices(has_scored_ ? programs_.choose_scored : programs_.choose);

  Replay replay = replay_of_passes();
  if (go_on) replay.rows = {}, replay.spans = {};
  return replay;
}

Replay Step::replay_of_passes() const {
  Replay replay;
  replay.rows = rows_;
  replay.spans = spans_;
  replay.updates = updates_;
  replay.passes = passes_;
  return replay;
}

void append_sequence(const Context& context, uint32_t sequence, const Choosing& choosing,
                     std::span<const uint32_t> log, std::vector<Update>& updates) {
  const SequenceStore& store = context.sequences;
  const std::span<const uint32_t> tokens = log.empty() ? store[sequence].tokens : log;
  updates.push_back({store.record(sequence), std::as_bytes(std::span(&choosing.record, 1))});
  if (!choosing.options.empty())
    updates.push_back({store.options(sequence), std::as_bytes(std::span(choosing.options))});
  updates.push_back({store.log(sequence, 0), std::as_bytes(tokens)});
}

Outcome await(const Context& context, Ticket ticket) {
  const Outcome outcome = context.device->wait(ticket, kForever);
  context.weights->check_files();  // first: numbers of a file that was cut explain everything else
  if (!outcome.finished) throw DeviceError("the device did not finish a step within a day");
  return outcome;
}

void await_all_well(const Context& context, Ticket ticket) {
  const Outcome outcome = await(context, ticket);
  for (const Status& status : outcome.statuses)
    if (status.code != kStatusOk) throw DeviceError(describe(status, context.cache));
}

std::string describe(const Status& status, const KvCache& cache) {
  const std::string at = ", position " + std::to_string(status.position) + ": ";
  switch (status.code) {
    case kStatusNotANumber:
      return "sample" + at + "the logits are not numbers (NaN): " +
             (cache.format() == Format::f32
                  ? "the weights are damaged"
                  : "keys or values beyond " + largest_of(cache.format()) +
                        " cache, or damaged weights; load the model with kv_type=\"f32\" to know "
                        "which");
    case kStatusBadToken:
      return "embedding" + at + "token " + std::to_string(status.detail) +
             " is outside the vocabulary";
    case kStatusNoCandidate:
      return "sample" + at + "every logit is -inf: there is no token to choose";
    default:
      return "status " + std::to_string(status.code) + at + "unknown";
  }
}

}  // namespace akunu
