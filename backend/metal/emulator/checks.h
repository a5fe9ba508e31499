// What level `checked` looks at: every access of a lane to memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "metal/emulator/executor.h"
#include "metal/emulator/library.h"

namespace akunu::metal::emulator {

class ThreadgroupRunner;

// Moments are counted up at every beginning of a threadgroup and at every barrier. An access is
// known by its moment (which also tells the threadgroup) and its lane.
struct Access {
  uint64_t moment : 44 = 0;  // 0: none
  uint64_t lane : 16 = 0;
  uint64_t is_atomic : 1 = 0;
  // Who else has read since: nobody, lanes of the SIMD-group, of the threadgroup, of others.
  uint64_t spread : 3 = 0;
};
static_assert(sizeof(Access) == 8);

// The last write and the last reads of one byte.
struct ByteHistory {
  Access write;
  Access read;

  bool operator==(const ByteHistory& other) const {
    return std::memcmp(this, &other, sizeof(*this)) == 0;
  }
};

class Checks {
 public:
  Checks() = default;

  // Memory of the emulator that lanes may touch.
  void set_own_memory(std::byte* begin, size_t size);
  void begin_launch(const Launch& launch, const FunctionCode& code, const Bound& bound);
  void begin_threadgroup(std::array<uint32_t, 3> position);
  void end_stage();

  void threadgroup_barrier(bool orders_device, bool orders_threadgroup);
  void simdgroup_barrier(uint32_t simdgroup, bool orders_device, bool orders_threadgroup);

  // An access of the lane that runs. Stops it where the access is wrong.
  void access(uintptr_t address, size_t size, bool is_write, bool is_atomic);

  // By buffer index: what all launches loaded from it, a byte counted once per threadgroup.
  const std::array<uint64_t, kBufferSlots>& bytes_read() const { return bytes_read_; }

 private:
  // Bytes that one or more arguments cover.
  struct Segment {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint32_t argument = 0;  // index in the signature: one that may write, if any may
    bool is_writable = false;
    bool is_threadgroup = false;
  };
  struct LaunchRecord {
    uint64_t first_moment = 0;
    std::string name;
  };
  struct ThreadgroupRecord {
    uint64_t first_moment = 0;
    std::array<uint32_t, 3> position = {};
  };
  // Moments of the last barriers that ordered one kind of memory.
  struct Order {
    uint64_t threadgroup = 0;
    std::array<uint64_t, kMaxThreads / 32> simdgroups = {};
  };
  static constexpr size_t kPageBytes = 4096;
  using Page = std::array<ByteHistory, kPageBytes>;

  const Segment* find(uintptr_t address);
  ByteHistory* history(uintptr_t address);
  bool check_byte(const Segment& segment, uintptr_t address, ByteHistory& history, Access now,
                  bool is_write);  // false: reported
  bool conflicts(Access before, Access now, bool is_threadgroup) const;
  Access merge(Access before, Access now, bool is_threadgroup) const;
  bool is_program(uintptr_t address) const;
  // Reports only: the lane is stopped by who holds nothing that has to be destroyed.
  void report_outside(uintptr_t address, size_t size, bool is_write);
  void report_read_only(const Segment& segment, uintptr_t address);
  void report_race(const Segment& segment, uintptr_t address, Access before, bool before_writes,
                   bool now_writes);
  std::string describe(const Segment& segment, uintptr_t address) const;
  std::string describe(Access access) const;

  uintptr_t own_begin_ = 0;
  uintptr_t own_end_ = 0;
  std::vector<std::array<uintptr_t, 2>> program_;  // where the program and its constants lie

  const Launch* launch_ = nullptr;
  const FunctionCode* code_ = nullptr;
  std::vector<Segment> segments_;  // sorted, not overlapping
  // Where addresses of one kilobyte were found last; by their number, modulo.
  std::array<const Segment*, 16> found_segments_ = {};

  std::array<uint64_t, kBufferSlots> bytes_read_ = {};

  uint64_t moment_ = 0;
  uint64_t threadgroup_start_ = 0;
  uint64_t stage_start_ = 1;
  Order device_order_;
  Order threadgroup_order_;
  std::vector<LaunchRecord> launches_;           // of this stage
  std::vector<ThreadgroupRecord> threadgroups_;  // of this stage

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  struct FoundPage {
    uintptr_t number = 0;
    Page* page = nullptr;
  };
  std::array<FoundPage, 64> found_pages_ = {};  // by their number, modulo
};

}  // namespace akunu::metal::emulator
