#include "cpu/submissions.h"

#include "core/device_checks.h"
#include "core/error.h"
#include "cpu/program.h"

namespace akunu::cpu {
namespace {

const StepMemory& memory_of(Program program) {
  return static_cast<const CompiledProgram*>(program.handle)->memory;
}

}  // namespace

void Submissions::set_limits(const SubmissionLimits& limits) {
  if (!idle()) throw DeviceError("limits cannot change while a submission is in flight");
  limits_ = larger_of(limits_, limits);
  for (Submission& entry : entries_) {
    entry.rows.reserve(limits_.max_rows);
    entry.spans.reserve(limits_.max_rows);
    entry.statuses.reserve(limits_.max_rows);
    entry.updates.reserve(limits_.max_updates);
    entry.update_bytes.reserve(limits_.max_update_bytes);
    entry.passes.reserve(limits_.max_passes);
  }
}

void Submissions::check(const Replay& replay) const {
  if (n_submitted_ - n_done_ >= kCapacity)
    throw DeviceError(std::to_string(kCapacity) +
                      " submissions are in flight; wait for one of them first");
  check_replay(replay, limits_, memory_of);
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
  entry.copies.swap(waiting_);
  waiting_.clear();
  entry.updates.clear();
  entry.update_bytes.clear();
  for (const Update& update : replay.updates) {
    entry.updates.push_back({update.destination, entry.update_bytes.size(), update.bytes.size()});
    entry.update_bytes.insert(entry.update_bytes.end(), update.bytes.begin(), update.bytes.end());
  }
  return ++n_submitted_;
}

void Submissions::forget(const Buffer& buffer) {
  std::erase_if(waiting_, [&](const Copy& copy) {
    return copy.from.buffer.handle == buffer.handle || copy.to.buffer.handle == buffer.handle;
  });
}

const Submission& Submissions::at(Ticket ticket) const {
  check_ticket(ticket, n_submitted_, kCapacity);
  return entries_[ticket % kCapacity];
}

}  // namespace akunu::cpu
