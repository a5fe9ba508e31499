#include "inference/step.h"

#include <cassert>
#include <chrono>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

constexpr auto kForever = std::chrono::hours(24);

std::string describe(const Outcome& outcome, Format cache) {
  std::string what;
  switch (outcome.status.code) {
    case kStatusNotANumber:
      what = "the logits are not numbers (NaN): ";
      what += cache == Format::f16
                  ? "keys or values beyond 65504, the largest number of an f16 cache, or damaged "
                    "weights; load the model with kv_type=\"f32\" to know which"
                  : "the weights are damaged";
      break;
    case kStatusBadToken:
      what = "token " + std::to_string(outcome.status.detail) + " is outside the vocabulary";
      break;
    case kStatusNoCandidate:
      what = "every logit is -inf: there is no token to choose";
      break;
    default:
      what = "status " + std::to_string(outcome.status.code);
  }
  return std::string(outcome.label) + ", row " + std::to_string(outcome.status.row) + ": " + what;
}

}  // namespace

Step::Step(const Model& model) : model_(model) {
  rows_.reserve(model.max_rows());
  spans_.reserve(model.max_rows());
  updates_.reserve(model.max_updates());
}

void Step::clear() {
  rows_.clear();
  spans_.clear();
  updates_.clear();
  n_generated_ = 0;
  n_generated_head_rows_ = 0;
  n_head_rows_ = 0;
}

void Step::update(const Binding& destination, std::span<const std::byte> bytes) {
  assert(updates_.size() < updates_.capacity());
  updates_.push_back({destination, bytes});
}

void Step::update(std::span<const Update> updates) {
  for (const Update& each : updates) update(each.destination, each.bytes);
}

void Step::update_sequence(uint32_t sequence, const SequenceRecord& record) {
  const SequenceStore& store = model_.sequences();
  update(store.record(sequence), std::as_bytes(std::span(&record, 1)));
  update(store.log(sequence, 0), std::as_bytes(std::span(store[sequence].tokens)));
}

void Step::add_span(uint32_t sequence, uint32_t first_row, uint32_t n_rows) {
  spans_.push_back({sequence, first_row, n_rows, 0});
}

uint32_t Step::add_generated(const Row& row) {
  assert(rows_.size() == n_generated_ && n_generated_ < kMaxFewRows);
  const auto index = static_cast<uint32_t>(rows_.size());
  Row added = row;
  added.head_row = n_head_rows_++;
  // Neighbours of one sequence, one position after the other, are one span.
  const bool continues = index > 0 && rows_.back().sequence == row.sequence &&
                         rows_.back().position + 1 == row.position;
  if (continues)
    ++spans_.back().n_rows;
  else
    add_span(row.sequence, index, 1);
  added.span = static_cast<uint32_t>(spans_.size()) - 1;
  rows_.push_back(added);
  ++n_generated_;
  ++n_generated_head_rows_;
  return index;
}

uint32_t Step::add_prompt(const Row& first, uint32_t n_rows, Logits logits, bool chain_last) {
  assert(rows_.size() + n_rows <= model_.max_rows());
  const auto first_index = static_cast<uint32_t>(rows_.size());
  const auto span = static_cast<uint32_t>(spans_.size());
  add_span(first.sequence, first_index, n_rows);
  for (uint32_t i = 0; i < n_rows; ++i) {
    const bool last = i + 1 == n_rows;
    Row row = first;
    row.position = first.position + i;
    row.kv_length = row.position + 1;
    row.flags = kRowActive | kRowPrompt | (last && chain_last ? kRowChained : 0);
    row.span = span;
    row.head_row =
        logits == Logits::all || (last && logits == Logits::last) ? n_head_rows_++ : kNone;
    rows_.push_back(row);
  }
  return first_index;
}

Ticket Step::submit(Device& device, uint32_t steps, bool choose, bool go_on) {
  Passes passes;
  Replay replay = make_replay(passes, choose, go_on);
  replay.steps = steps;
  return device.submit(replay);
}

std::vector<CommandTime> Step::profile(Device& device) {
  Passes passes;
  return device.profile(make_replay(passes, true, false));
}

Replay Step::make_replay(Passes& passes, bool choose, bool go_on) const {
  const auto n_rows = static_cast<uint32_t>(rows_.size());
  const auto n_spans = static_cast<uint32_t>(spans_.size());
  const uint32_t n_prompt = n_rows - n_generated_;
  const uint32_t n_prompt_head_rows = n_head_rows_ - n_generated_head_rows_;
  uint32_t n_generated_spans = 0;
  while (n_generated_spans < n_spans && spans_[n_generated_spans].first_row < n_generated_)
    ++n_generated_spans;

  const ClassPrograms& generated =
      model_.programs(n_generated_ == 1 ? RowClass::single : RowClass::few);
  const ClassPrograms& prompt = model_.programs(RowClass::many);
  size_t n_passes = 0;
  const auto add_pass = [&](Program program, bool prompts) {
    passes[n_passes++] =
        prompts ? Pass{program,
                       n_generated_,
                       n_prompt,
                       n_generated_head_rows_,
                       n_prompt_head_rows,
                       n_generated_spans,
                       n_spans - n_generated_spans}
                : Pass{program, 0, n_generated_, 0, n_generated_head_rows_, 0, n_generated_spans};
  };
  if (n_generated_ > 0) add_pass(generated.body, false);
  if (n_prompt > 0) add_pass(prompt.body, true);
  if (n_generated_head_rows_ > 0) add_pass(generated.logits, false);
  if (n_prompt_head_rows > 0) add_pass(prompt.logits, true);
  if (choose) passes[n_passes++] = {model_.choose(), 0, n_rows, 0, n_head_rows_, 0, n_spans};

  Replay replay;
  if (!go_on) {
    replay.rows = rows_;
    replay.spans = spans_;
  }
  replay.updates = updates_;
  replay.passes = std::span(passes).first(n_passes);
  return replay;
}

void await(Model& model, Ticket ticket) {
  const Outcome outcome = model.device().wait(ticket, kForever);
  model.check_files();  // first: numbers of a file that was cut explain everything else
  if (!outcome.finished) throw DeviceError("the device did not finish a step within a day");
  if (outcome.status.code != kStatusOk)
    throw DeviceError(describe(outcome, model.cache().groups()[0].format));
}

}  // namespace akunu
