// The queue of submissions: everything that `submit` is told is copied into entries that exist
// since the limits are known, so that it neither allocates nor keeps the caller's memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace akunu::cpu {

struct QueuedUpdate {
  Binding destination;
  uint64_t first_byte = 0;  // in update_bytes
  uint64_t n_bytes = 0;
};

struct Submission {
  uint32_t steps = 0;
  bool started = false;
  std::vector<Row> rows;
  std::vector<Span> spans;
  std::vector<Copy> copies;  // before the updates
  std::vector<QueuedUpdate> updates;
  std::vector<std::byte> update_bytes;
  std::vector<Pass> passes;
  std::vector<Status> statuses;  // what the outcome shows
  Outcome outcome;
};

class Submissions {
 public:
  // Submissions that may be under way or remembered at once.
  static constexpr uint64_t kCapacity = 8;

  // Grows to the larger of the old and the new limits. Nothing may be in flight.
  void set_limits(const SubmissionLimits& limits);
  const SubmissionLimits& limits() const { return limits_; }

  // Throws ArgumentError outside the limits and DeviceError when the queue is full. Copies that wait
  // become part of it.
  Ticket push(const Replay& replay);

  // Copies that come before the next submission.
  void add(std::span<const Copy> copies) {
    waiting_.insert(waiting_.end(), copies.begin(), copies.end());
  }
  const std::vector<Copy>& waiting() const { return waiting_; }
  // Forgets those from or to memory that is released.
  void forget(const Buffer& buffer);

  bool idle() const { return n_done_ == n_submitted_; }
  // The oldest one that is not done.
  Submission& front() { return entries_[(n_done_ + 1) % kCapacity]; }
  void finish_front() { ++n_done_; }
  bool done(Ticket ticket) const { return ticket <= n_done_; }
  // Throws ArgumentError for a ticket that was never given out or is long forgotten.
  const Submission& at(Ticket ticket) const;

  // Tickets in flight are n_done() + 1 .. n_submitted().
  Ticket n_done() const { return n_done_; }
  Ticket n_submitted() const { return n_submitted_; }

 private:
  void check(const Replay& replay) const;

  SubmissionLimits limits_{0, 0, 0, 0};
  std::array<Submission, kCapacity>
      entries_;  // ticket t lies at t % kCapacity; tickets count from 1
  std::vector<Copy> waiting_;
  Ticket n_submitted_ = 0;
  Ticket n_done_ = 0;
};

}  // namespace akunu::cpu
