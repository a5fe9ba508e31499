#include "cuda/submissions.h"

#include <algorithm>
#include <cstring>

#include "core/device_checks.h"
#include "core/error.h"

namespace akunu::cuda {
namespace {

// Where a staged piece begins.
constexpr uint64_t kStagedAlignment = 16;

uint64_t aligned(uint64_t bytes) {
  return (bytes + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
}

const StepMemory& memory_of(Program program) { return program_of(program).memory; }

// Where the kernels of a submission write statuses, and how much of that its rows have.
DevicePointer statuses_of(const Submission& submission) {
  return address_of(memory_of(submission.passes.front().program).statuses);
}
uint64_t status_bytes(const Submission& submission) {
  return end_of_rows(submission.passes) * sizeof(Status);
}
bool touches(const Copy& move, const Buffer& buffer) {
  return move.from.buffer.handle == buffer.handle || move.to.buffer.handle == buffer.handle;
}

}  // namespace

Submissions::Submissions(const Gpu& gpu) : gpu_(gpu) {
  for (Submission& entry : entries_)
    gpu_.driver().check(gpu_.driver().event_create(&entry.done, kNoTiming), "an event of the GPU");
}

Submissions::~Submissions() {
  for (Submission& entry : entries_) static_cast<void>(gpu_.driver().event_destroy(entry.done));
}

void Submissions::set_limits(const SubmissionLimits& limits) {
  if (!idle()) throw DeviceError("limits cannot change while a submission is in flight");
  limits_ = larger_of(limits_, limits);
  entry_bytes_ = uint64_t{limits_.max_rows} * (sizeof(Row) + sizeof(Span)) +
                 aligned(limits_.max_update_bytes + limits_.max_updates * kStagedAlignment);
  if (kCapacity * entry_bytes_ > staging_.size())
    staging_ = PinnedBlock(gpu_, kCapacity * entry_bytes_);
  const uint64_t status_bytes = kCapacity * uint64_t{limits_.max_rows} * sizeof(Status);
  if (status_bytes > statuses_.size()) statuses_ = PinnedBlock(gpu_, status_bytes);
  for (Submission& entry : entries_) {
    entry.passes.reserve(limits_.max_passes);
    entry.copies.reserve(limits_.max_updates + 2);  // rows, spans
  }
}

void Submissions::check(const Replay& replay) const {
  if (n_submitted_ - n_done_ >= kCapacity)
    throw DeviceError(std::to_string(kCapacity) +
                      " submissions are in flight; wait for one of them first");
  check_replay(replay, limits_, memory_of);
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
  if (std::ranges::any_of(waiting_, touches_it)) return true;
  for (Ticket ticket = n_done_ + 1; ticket <= n_submitted_; ++ticket) {
    const Submission& entry = entries_[ticket % kCapacity];
    for (const Pass& pass : entry.passes)
      if (program_of(pass.program).uses(buffer.handle)) return true;
    if (std::ranges::any_of(entry.moves, touches_it)) return true;
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

void Submissions::begin(const Submission& submission) const {
  const Driver& driver = gpu_.driver();
  for (const StagedCopy& copy : submission.copies)
    driver.check(driver.copy_to_device(address_of(copy.destination) + copy.offset,
                                       staging_.contents() + copy.from, copy.n_bytes, gpu_.steps()),
                 "the beginning of a submission");
  if (submission.passes.empty()) return;
  const uint64_t n_bytes = status_bytes(submission);
  if (n_bytes == 0) return;
  driver.check(driver.fill(statuses_of(submission), 0, n_bytes, gpu_.steps()),
               "the beginning of a submission");
}

void Submissions::end(const Submission& submission, Ticket ticket) const {
  const Driver& driver = gpu_.driver();
  const uint64_t n_bytes = submission.passes.empty() ? 0 : status_bytes(submission);
  if (n_bytes > 0)
    driver.check(driver.copy_to_host(statuses_.contents() + first_kept_status(ticket),
                                     statuses_of(submission), n_bytes, gpu_.steps()),
                 "the end of a submission");
  driver.check(driver.event_record(submission.done, gpu_.steps()), "the end of a submission");
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

}  // namespace akunu::cuda
