// What every device checks of its caller's arguments, and how it counts memory: said once, so that
// a mistake has the same message on every backend.
#pragma once

#include <deque>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace akunu {

// The larger of each: limits only grow.
SubmissionLimits larger_of(const SubmissionLimits& a, const SubmissionLimits& b);

// The rows that passes cover are those before this one.
uint32_t end_of_rows(std::span<const Pass> passes);

// Throws ArgumentError for a replay outside the limits or the memory of its programs.
// `memory_of` gives what a program was compiled with.
void check_replay(const Replay& replay, const SubmissionLimits& limits,
                  const StepMemory& (*memory_of)(Program program));

// Throws ArgumentError for a ticket that was never given out or whose outcome is forgotten: a device
// keeps those of the last `n_kept`.
void check_ticket(Ticket ticket, Ticket n_submitted, uint64_t n_kept);

// Throws ArgumentError, naming the command: as many labels and dependencies as commands, a pipeline
// and every operand that must be there, bound inside its buffer, waits for earlier commands only.
void check_table(const DispatchTable& table);

// Throws ArgumentError when the bytes of a part are not what format, rows and k say.
void check_weight(const WeightSource& source);

// The weight that `import(part)` makes Buffers of, plane by plane; `release(buffer)` gives back those
// that are there when one throws.
template <class Import, class Release>
Weight import_planes(const WeightSource& source, const Import& import, const Release& release) {
  Weight weight{.format = source.format, .rows = source.rows, .k = source.k};
  try {
    for (uint32_t plane = 0; plane < format_info(source.format).n_planes; ++plane)
      weight.planes[plane] = {import(source.parts[plane]), 0};
  } catch (...) {
    for (const Binding& plane : weight.planes)
      if (plane) release(plane.buffer);
    throw;
  }
  return weight;
}

// Throws ArgumentError when a copy of so many bytes leaves the buffer. `verb`: "read", "write".
void check_copy(std::string_view verb, const Binding& binding, uint64_t bytes);

// Throws ArgumentError for a copy within the device's memory that leaves a buffer, is not whole words, or overlaps
// itself.
void check_copies(std::span<const Copy> copies);

// Bytes per label.
class MemoryLedger {
 public:
  void add(std::string_view label, bool mapped, uint64_t bytes) { at(label, mapped) += bytes; }
  void remove(std::string_view label, bool mapped, uint64_t bytes) { at(label, mapped) -= bytes; }
  // In order of appearance, without those that have none left.
  std::vector<MemoryUse> uses() const;

 private:
  uint64_t& at(std::string_view label, bool mapped);
  std::deque<MemoryUse> uses_;
};

}  // namespace akunu
