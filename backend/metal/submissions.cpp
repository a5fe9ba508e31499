#include "metal/submissions.h"

#include <algorithm>
#include <cstring>

#include "core/device_checks.h"
#include "core/error.h"

namespace akunu::metal {
namespace {

// Copies on the GPU are of whole words.
constexpr uint64_t kWord = 4;
// Where a staged piece begins.
constexpr uint64_t kStagedAlignment = 16;

uint64_t aligned(uint64_t bytes) {
  return (bytes + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
}

const StepMemory& memory_of(Program program) { return program_of(program).memory; }

// Where the kernels of a submission write statuses, and how much of that its rows have.
const Allocation& statuses_of(const Submission& submission) {
  return allocation_of(memory_of(submission.passes.front().program).statuses);
}
uint64_t status_bytes(const Submission& submission) {
  return end_of_rows(submission.passes) * sizeof(Status);
}
bool touches(const Copy& move, const Buffer& buffer) {
  return move.from.buffer.handle == buffer.handle || move.to.buffer.handle == buffer.handle;
}

}  // namespace

void Submissions::set_limits(const SubmissionLimits& limits) {
  if (!idle()) throw DeviceError("limits cannot change while a submission is in flight");
  limits_ = larger_of(limits_, limits);
  const uint64_t range_bytes = 2 * uint64_t{limits_.max_passes} * sizeof(PassRange);
  entry_bytes_ = aligned(range_bytes) + uint64_t{limits_.max_rows} * (sizeof(Row) + sizeof(Span)) +
                 aligned(limits_.max_update_bytes + limits_.max_updates * kStagedAlignment);
  constexpr std::string_view kLabel = "staging";
  if (kCapacity * entry_bytes_ > staging_.size())
    staging_ = OwnedBlock(memory_, kCapacity * entry_bytes_, kLabel);
  const uint64_t status_bytes = kCapacity * uint64_t{limits_.max_rows} * sizeof(Status);
  if (status_bytes > statuses_.size()) statuses_ = OwnedBlock(memory_, status_bytes, kLabel);
  if (range_bytes > ranges_.size()) ranges_ = OwnedBlock(memory_, range_bytes, kLabel);
  for (Submission& entry : entries_) {
    entry.passes.reserve(limits_.max_passes);
    entry.copies.reserve(limits_.max_updates + 3);  // ranges, rows, spans
  }
}

void Submissions::check(const Replay& replay) const {
  if (n_submitted_ - n_done_ >= kCapacity)
    throw DeviceError(std::to_string(kCapacity) +
                      " submissions are in flight; wait for one of them first");
  check_replay(replay, limits_, memory_of);
  for (const Update& update : replay.updates)
    if (update.destination.offset % kWord != 0 || update.bytes.size() % kWord != 0)
      throw ArgumentError("an update of " + std::to_string(update.bytes.size()) +
                          " bytes at byte " + std::to_string(update.destination.offset) +
                          " is not one of whole words");
}

void Submissions::stage_bytes(Submission& entry, const Buffer& destination, uint64_t offset,
                              std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::memcpy(staging_.contents() + staged_end_, bytes.data(), bytes.size());
  entry.copies.push_back({staged_end_, destination, offset, bytes.size()});
  staged_end_ += aligned(bytes.size());
}

Submission& Submissions::stage(const Replay& replay) {
  check(replay);
  const Ticket ticket = n_submitted_ + 1;
  Submission& entry = entries_[ticket % kCapacity];
  entry.steps = replay.steps;
  entry.outcome = {};
  entry.passes.assign(replay.passes.begin(), replay.passes.end());
  {
    const std::lock_guard lock(mutex_);
    entry.moves.swap(waiting_);
    waiting_.clear();
  }
  entry.copies.clear();
  staged_end_ = ticket % kCapacity * entry_bytes_;
  // In the order of the contract: what is updated and part of the rows' memory is overwritten.
  for (const Update& update : replay.updates)
    stage_bytes(entry, update.destination.buffer, update.destination.offset, update.bytes);
  if (entry.passes.empty()) return entry;
  const StepMemory& memory = memory_of(entry.passes.front().program);
  stage_bytes(entry, memory.rows, 0, std::as_bytes(replay.rows));
  stage_bytes(entry, memory.spans, 0, std::as_bytes(replay.spans));
  for (uint32_t i = 0; i < entry.passes.size(); ++i) {
    const Pass& pass = entry.passes[i];
    const std::array<PassRange, 2> both{
        {{pass.first_row, pass.n_rows, pass.first_span, pass.n_spans},
         {pass.first_head_row, pass.n_head_rows, pass.first_span, pass.n_spans}}};
    stage_bytes(entry, ranges_.block(), i * sizeof(both), std::as_bytes(std::span(both)));
  }
  return entry;
}

const Submission& Submissions::at(Ticket ticket) const {
  check_ticket(ticket, n_submitted_, kCapacity);
  return entries_[ticket % kCapacity];
}

void Submissions::forget(const Buffer& buffer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Copy& move) { return touches(move, buffer); });
}

bool Submissions::uses(const Buffer& buffer) const {
  const std::lock_guard lock(mutex_);
  const auto touches_it = [&](const Copy& move) { return touches(move, buffer); };
  if (std::any_of(waiting_.begin(), waiting_.end(), touches_it)) return true;
  for (Ticket ticket = n_done_ + 1; ticket <= n_submitted_; ++ticket) {
    const Submission& entry = entries_[ticket % kCapacity];
    for (const Pass& pass : entry.passes)
      if (program_of(pass.program).uses(buffer.handle)) return true;
    if (std::any_of(entry.moves.begin(), entry.moves.end(), touches_it)) return true;
    for (const StagedCopy& copy : entry.copies)
      if (copy.destination.handle == buffer.handle) return true;
  }
  return false;
}

bool Submissions::uses(const CompiledProgram& program) const {
  const std::lock_guard lock(mutex_);
  for (Ticket ticket = n_done_ + 1; ticket <= n_submitted_; ++ticket)
    for (const Pass& pass : entries_[ticket % kCapacity].passes)
      if (pass.program.handle == &program) return true;
  return false;
}

void Submissions::encode_head(MTL::BlitCommandEncoder* encoder,
                              const Submission& submission) const {
  for (const Copy& move : submission.moves) {
    if (move.bytes == 0) continue;
    const Allocation &from = allocation_of(move.from.buffer), &to = allocation_of(move.to.buffer);
    encoder->copyFromBuffer(from.buffer, from.offset + move.from.offset, to.buffer,
                            to.offset + move.to.offset, move.bytes);
  }
  for (const StagedCopy& copy : submission.copies) {
    const Allocation& to = allocation_of(copy.destination);
    encoder->copyFromBuffer(staging_.buffer(), copy.from, to.buffer, to.offset + copy.offset,
                            copy.n_bytes);
  }
  const uint64_t n_bytes = status_bytes(submission);
  if (n_bytes == 0) return;
  const Allocation& statuses = statuses_of(submission);
  encoder->fillBuffer(statuses.buffer, NS::Range::Make(statuses.offset, n_bytes), 0);
}

void Submissions::encode_tail(MTL::BlitCommandEncoder* encoder, const Submission& submission,
                              Ticket ticket) const {
  const uint64_t n_bytes = status_bytes(submission);
  if (n_bytes == 0) return;
  const Allocation& statuses = statuses_of(submission);
  encoder->copyFromBuffer(statuses.buffer, statuses.offset, statuses_.buffer(),
                          first_kept_status(ticket), n_bytes);
}

void Submissions::collect(Submission& submission, Ticket ticket) const {
  submission.outcome.finished = true;
  submission.outcome.steps_done = submission.steps;
  const uint32_t n_rows = end_of_rows(submission.passes);
  if (n_rows == 0) return;
  const std::span statuses(
      reinterpret_cast<const Status*>(statuses_.contents() + first_kept_status(ticket)), n_rows);
  const auto is_bad = [](const Status& status) { return status.code != kStatusOk; };
  if (std::ranges::any_of(statuses, is_bad)) submission.outcome.statuses = statuses;
}

}  // namespace akunu::metal
