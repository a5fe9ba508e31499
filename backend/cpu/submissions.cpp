#include "cpu/submissions.h"

#include <algorithm>

#include "core/error.h"
#include "cpu/program.h"

namespace akunu::cpu {
namespace {

void check_limit(std::string_view what, uint64_t asked, uint64_t limit) {
  if (asked > limit)
    throw ArgumentError("a submission has " + std::to_string(asked) + " " + std::string(what) +
                        ", the limit is " + std::to_string(limit));
}

const CompiledProgram& program_of(const Pass& pass) {
  if (pass.program.handle == nullptr) throw ArgumentError("a pass of a submission has no program");
  return *static_cast<const CompiledProgram*>(pass.program.handle);
}

}  // namespace

void Submissions::set_limits(const SubmissionLimits& limits) {
  if (!idle()) throw DeviceError("limits cannot change while a submission is in flight");
  limits_.max_rows = std::max(limits_.max_rows, limits.max_rows);
  limits_.max_updates = std::max(limits_.max_updates, limits.max_updates);
  limits_.max_update_bytes = std::max(limits_.max_update_bytes, limits.max_update_bytes);
  limits_.max_passes = std::max(limits_.max_passes, limits.max_passes);
  for (Submission& entry : entries_) {
    entry.rows.reserve(limits_.max_rows);
    entry.spans.reserve(limits_.max_rows);
    entry.updates.reserve(limits_.max_updates);
    entry.update_bytes.reserve(limits_.max_update_bytes);
    entry.passes.reserve(limits_.max_passes);
  }
}

void Submissions::check(const Replay& replay) const {
  if (n_submitted_ - n_done_ >= kCapacity)
    throw DeviceError(std::to_string(kCapacity) +
                      " submissions are in flight; wait for one of them first");
  check_limit("rows", replay.rows.size(), limits_.max_rows);
  check_limit("spans", replay.spans.size(), limits_.max_rows);
  check_limit("updates", replay.updates.size(), limits_.max_updates);
  check_limit("passes", replay.passes.size(), limits_.max_passes);
  uint64_t n_bytes = 0;
  for (const Update& update : replay.updates) {
    n_bytes += update.bytes.size();
    const uint64_t size = update.destination.buffer.size, offset = update.destination.offset;
    if (!update.destination || offset > size || update.bytes.size() > size - offset)
      throw ArgumentError("an update of " + std::to_string(update.bytes.size()) +
                          " bytes at byte " + std::to_string(offset) + " leaves its buffer of " +
                          std::to_string(size) + " bytes");
  }
  check_limit("update bytes", n_bytes, limits_.max_update_bytes);
  if (replay.passes.empty() && (!replay.rows.empty() || !replay.spans.empty()))
    throw ArgumentError("a submission has rows, but no pass whose memory they could go to");
  for (const Pass& pass : replay.passes) {
    const StepMemory& memory = program_of(pass).memory;
    if (memory.rows.handle != program_of(replay.passes.front()).memory.rows.handle)
      throw ArgumentError("the programs of a submission were compiled with different step memory");
    const uint64_t max_rows = memory.rows.size / sizeof(Row),
                   max_spans = memory.spans.size / sizeof(Span);
    check_limit("rows in a pass", uint64_t{pass.first_row} + pass.n_rows, max_rows);
    check_limit("spans in a pass", uint64_t{pass.first_span} + pass.n_spans, max_spans);
    check_limit("rows", replay.rows.size(), max_rows);
    check_limit("spans", replay.spans.size(), max_spans);
  }
}

Ticket Submissions::push(const Replay& replay) {
  check(replay);
  Submission& entry = entries_[(n_submitted_ + 1) % kCapacity];
  entry.steps = replay.steps;
  entry.started = false;
  entry.outcome = {};
  entry.rows.assign(replay.rows.begin(), replay.rows.end());
  entry.spans.assign(replay.spans.begin(), replay.spans.end());
  entry.passes.assign(replay.passes.begin(), replay.passes.end());
  entry.updates.clear();
  entry.update_bytes.clear();
  for (const Update& update : replay.updates) {
    entry.updates.push_back({update.destination, entry.update_bytes.size(), update.bytes.size()});
    entry.update_bytes.insert(entry.update_bytes.end(), update.bytes.begin(), update.bytes.end());
  }
  return ++n_submitted_;
}

const Submission& Submissions::at(Ticket ticket) const {
  if (ticket == 0 || ticket > n_submitted_)
    throw ArgumentError("ticket " + std::to_string(ticket) +
                        " was never given out; the last one is " + std::to_string(n_submitted_));
  if (ticket + kCapacity <= n_submitted_)
    throw ArgumentError("the outcome of ticket " + std::to_string(ticket) +
                        " is no longer kept; the last one is " + std::to_string(n_submitted_));
  return entries_[ticket % kCapacity];
}

}  // namespace akunu::cpu
