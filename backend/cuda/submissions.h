// The queue of submissions. What the host says about one lies in pinned memory of its own from `stage`
// until its outcome is known; the first thing that the GPU does is to copy it to where kernels read
// it. So the host never writes what the GPU may be reading.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/device.h"
#include "cuda/memory.h"
#include "cuda/program.h"

namespace akunu::cuda {

// Submissions that may be under way or remembered at once.
constexpr uint64_t kCapacity = 8;

// A copy that a submission begins with.
struct StagedCopy {
  uint64_t from = 0;  // in the staging memory
  Buffer destination;
  uint64_t offset = 0;
  uint64_t n_bytes = 0;
};

struct Submission {
  uint32_t steps = 0;
  std::vector<Pass> passes;
  std::vector<StagedCopy> copies;
  std::vector<Copy> moves;  // within the GPU's memory, which went into the stream before it
  Event done = nullptr;     // the last that the GPU does for it
  Outcome outcome;
};

class Submissions {
 public:
  explicit Submissions(const Gpu& gpu);
  ~Submissions();
  Submissions(const Submissions&) = delete;
  Submissions& operator=(const Submissions&) = delete;

  // Grows to the larger of the old and the new limits. Nothing may be in flight.
  void set_limits(const SubmissionLimits& limits);

  // Stages a submission as the next ticket; `commit` makes it count. Throws ArgumentError outside the
  // limits and DeviceError when the queue is full.
  Submission& stage(const Replay& replay);
  Ticket commit() {
    const std::lock_guard lock(mutex_);
    return ++n_submitted_;
  }

  // Copies that are in the stream, and count as used until the next submission is done.
  void add(std::span<const Copy> moves) {
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), moves.begin(), moves.end());
  }
  // Forgets those from or to memory that is released.
  void forget(const Buffer& buffer);

  bool idle() const { return n_done_ == n_submitted_; }
  Submission& front() { return entries_[(n_done_ + 1) % kCapacity]; }
  void finish_front() {
    const std::lock_guard lock(mutex_);
    ++n_done_;
  }
  // Throws ArgumentError for a ticket that was never given out or is long forgotten.
  const Submission& at(Ticket ticket) const;
  // Whether a submission in flight uses a buffer. Any thread may ask.
  bool uses(const Buffer& buffer) const;
  bool uses(const CompiledProgram& program) const;

  // Tickets in flight are n_done() + 1 .. n_submitted().
  Ticket n_done() const { return n_done_; }
  Ticket n_submitted() const { return n_submitted_; }

  // Copies of rows, spans and updates, then statuses are cleared. Throw DeviceError.
  void begin(const Submission& submission) const;
  // Statuses are copied to where `collect` reads them, and the submission is done.
  void end(const Submission& submission, Ticket ticket) const;
  // The outcome of a submission that is done.
  void collect(Submission& submission, Ticket ticket) const;

 private:
  void check(const Replay& replay) const;
  void stage_bytes(Submission& entry, const Buffer& destination, uint64_t offset,
                   std::span<const std::byte> bytes);
  // In statuses_, in bytes.
  uint64_t first_kept_status(Ticket ticket) const {
    return ticket % kCapacity * limits_.max_rows * sizeof(Status);
  }

  const Gpu& gpu_;
  mutable std::mutex mutex_;  // held by who changes which are in flight, or asks what they use
  SubmissionLimits limits_{0, 0, 0, 0};
  PinnedBlock staging_;   // kCapacity times entry_bytes_
  PinnedBlock statuses_;  // of every submission that is remembered, Status[max_rows] each
  uint64_t entry_bytes_ = 0;
  uint64_t staged_end_ = 0;
  std::array<Submission, kCapacity>
      entries_;  // ticket t lies at t % kCapacity; tickets count from 1
  std::vector<Copy> waiting_;
  Ticket n_submitted_ = 0;
  Ticket n_done_ = 0;
};

}  // namespace akunu::cuda
