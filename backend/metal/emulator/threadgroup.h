// One threadgroup while it runs: lanes that take turns and meet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "metal/emulator/executor.h"
#include "metal/emulator/fibers.h"
#include "metal/emulator/library.h"
#include "metal/emulator/runtime.h"

namespace akunu::metal::emulator {

class Checks;

// How lanes take turns: each runs until it has to wait, then the next of its SIMD-group, then the
// next SIMD-group; all in an order that the seed shuffles. So whoever comes next has not yet arrived
// where the others wait, and only the last to arrive finds everybody there.
class ThreadgroupRunner {
 public:
  explicit ThreadgroupRunner(Checks* checks);  // null at level plain

  // Sizes of all threadgroups that follow.
  void set_size(std::array<uint32_t, 3> threadgroups, std::array<uint32_t, 3> threads);
  // Runs every lane to its end. Returns what went wrong, or an empty string.
  std::string run(const FunctionCode& code, const Bound& bound, std::array<uint32_t, 3> position,
                  uint64_t shuffle);

  // For runtime.h: what the lane that runs now does.
  void meet_threadgroup(Site site, bool orders_device, bool orders_threadgroup);
  void meet_simdgroup(Site site, bool orders_device, bool orders_threadgroup);
  Exchange exchange(Site site, const void* value, uint32_t bytes, Combine combine);
  bool reach_matrix_function(Site site);
  // What is wrong with the lane that runs; then stop(), which no destructor survives.
  void report(const std::string& problem);
  [[noreturn]] void stop();
  uint32_t lane() const { return lane_; }
  Checks* checks() const { return checks_; }
  // Of every four weak exchanges one.
  bool fails_for_no_reason() { return ++n_exchanges_ % 4 == 0; }
  // Memory of the emulator that a lane may touch: stacks, and the slots of SIMD functions.
  std::byte* own_memory() const { return stacks_.memory(); }
  size_t own_bytes() const { return stacks_.size(); }

 private:
  struct SimdGroup {
    uint32_t waiting = 0;    // lanes where `site` is
    uint32_t finished = 0;   // lanes that have returned
    uint32_t first = 0;      // lane that runs first, and
    uint32_t stride = 1;     //   how far the next is
    uint32_t buffer = 0;     // of the two that values are exchanged through
    uint32_t last_lane = 0;  // that arrived or returned
    Site site;
    // Matrix functions that the first lane to pass here reached since the lanes last met.
    std::vector<Site> matrix_sites;
  };
  enum class State : uint8_t { not_started, stopped };

  static void lane_entry();
  void run_lanes();
  void finish_lane();
  void wait_and_switch(uint32_t lane);
  uint32_t next_in_simdgroup(uint32_t lane) const;
  uint32_t next_simdgroup(uint32_t simdgroup) const;
  uint32_t first_lane(uint32_t simdgroup) const;
  void arrive(SimdGroup& group, Site site);
  void leave_matrix_functions(SimdGroup& group);
  static std::string name_of(uint32_t lane);

  Checks* checks_ = nullptr;
  StackPool stacks_;
  std::vector<Fiber> fibers_;
  std::vector<Stack> lane_stacks_;
  std::vector<State> states_;
  std::vector<uint32_t> matrix_counts_;  // of each lane, since it last met the others
  std::vector<Position> threads_in_group_;
  std::vector<SimdGroup> simdgroups_;
  Fiber main_;

  const FunctionCode* code_ = nullptr;
  const Bound* bound_ = nullptr;
  Lane input_;  // of the lane that starts
  uint32_t n_lanes_ = 0;
  uint32_t n_simdgroups_ = 0;
  uint32_t lane_ = 0;                // that runs now
  uint32_t waiting_simdgroups_ = 0;  // at a threadgroup barrier
  uint32_t finished_simdgroups_ = 0;
  uint32_t first_simdgroup_ = 0;
  uint32_t simdgroup_stride_ = 1;
  uint32_t last_simdgroup_ = 0;  // that came to the barrier, or finished
  Site threadgroup_site_;
  uint32_t n_exchanges_ = 0;
  std::string problem_;
};

// Whose lanes run. Launches run one at a time in a program: function constants are its variables.
extern ThreadgroupRunner* running;

}  // namespace akunu::metal::emulator
