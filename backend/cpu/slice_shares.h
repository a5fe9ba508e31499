// Who takes which slices of a command. Each worker begins with a share of its own, slices that follow
// each other: they read memory that does, and a run through it that breaks off and begins elsewhere
// costs microseconds. Who has nothing left takes over half of what somebody else has.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace akunu::cpu {

// Slices [begin, end); none where they are equal.
struct Portion {
  uint64_t begin, end;
};

class SliceShares {
 public:
  void reserve(size_t n_commands, uint32_t n_workers);

  // Before each step: all slices of all commands are there to be taken.
  void begin_step();

  // The next slices of a command for a worker; none where all are taken. Workers may call it
  // concurrently, during a step with the same `n_slices` and `at_once` for a command. `at_once`: how many
  // neighbouring slices the kernel runs as one; a portion is a multiple of it, or what is left of a share.
  Portion take(size_t command, uint32_t worker, uint64_t n_slices, uint64_t at_once = 1);

 private:
  // A worker's slices of a command, in units (see units_of): its step in the upper 24 bits, then 20
  // for `begin` and 20 for `end`. A word of another step stands for a share that nobody has touched,
  // so that a step begins with one number, not with a word for each worker and command.
  struct alignas(64) Share {
    std::atomic<uint64_t> word{0};
  };
  struct Units {
    uint64_t begin, end;
    uint64_t count() const { return end - begin; }
  };

  static uint64_t units_of(uint64_t n_slices);
  uint64_t first_part(uint64_t n_left, uint64_t at_once) const;
  Units first_share(uint32_t worker, uint64_t n_units) const;
  uint64_t word_of(const Units& units) const;
  Units units_in(uint64_t word, uint32_t worker, uint64_t n_units) const;
  Units take_own(Share& own, uint32_t worker, uint64_t n_units, uint64_t at_once) const;
  Units take_over(Share* shares, uint32_t worker, uint64_t n_units, uint64_t at_once) const;

  std::vector<Share> shares_;  // [command][worker]
  uint32_t n_workers_ = 1;
  uint64_t step_ = 0;
};

}  // namespace akunu::cpu
