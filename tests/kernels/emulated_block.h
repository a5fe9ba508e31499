// A block of a CUDA kernel on the CPU, for warpgroup_words.h: its threads, barriers, copies and products of tensor cores.
//
// The threads of a block are fibers. A seed decides which runs next whenever one waits. What is asynchronous on the
// hardware happens here as late as it may, or at a random time:
// - a wgmma reads shared memory and writes its accumulators when the thread waits for it; until then they are NaN;
// - a bulk copy happens at a random time before its mbarrier's phase ends.
// Misuse ends the run with a message: a misaligned operand, an instruction that not all lanes of a warp or warpgroup
// execute, a barrier at which too many arrive, a deadlock, a wgmma without a fence before it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "metal/emulator/fibers.h"

namespace gpu {

using uchar = uint8_t;
using ushort = uint16_t;
using uint = uint32_t;
using ulong = uint64_t;

constexpr uint kWarp = 32, kWarpgroup = 128;
constexpr bool kHasWarpgroups = true, kHasBulkCopies = true;
constexpr uint kDynamicMemory = 231424;

struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A thread's part of one wgmma: its registers of A, or A's descriptor, and B's descriptor.
struct Product {
  float* sums;
  uint count;         // of them
  const uint* own_a;  // null: A is in shared memory
  uint a[4];
  ulong first, inputs;
  bool adds, is_transposed;   // B is MN-major
  float (*value)(uint bits);  // of its operands' type
};
// Accumulators of products under way.
struct Sums {
  float* at;
  std::vector<float> values;
  size_t n_products;
};
struct Copy {
  void* to;
  const void* from;
  uint n_bytes;
  ulong* barrier;
};
struct Thread {
  akunu::metal::emulator::Fiber fiber;
  bool is_done = false;
  bool is_fenced = false;
  bool is_ready = false;      // it has come to inputs_ready
  bool is_unordered = false;  // it has written what wgmma will read, and no fence came after that
  uint64_t n_met = 0;         // barriers of its warp and of its block that it has reached
  std::vector<Product> products;  // all so far
  std::vector<size_t> groups;     // how many of those each committed group ends with
  size_t n_seen = 0;              // those that were waited for
  std::vector<Sums> sums;
  std::vector<Copy> copies;  // of 16 bytes, that it has begun
  std::vector<size_t> copy_groups;
};
struct Meeting {
  uint64_t n_arrived = 0;
  uint values[2][kWarp];
};
struct Barrier {
  int expected, pending, bytes;
  uint phase;
};
struct NamedBarrier {
  std::vector<bool> has_come;
  uint n_come = 0;
  uint64_t round = 0;
};

class Block {
 public:
  Block(uint n_threads, uint seed, uint shared_offset)
      : threads(n_threads), warps(n_threads / kWarp), random(seed), shared(kShared + 1024) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(shared.data());
    base = shared.data() + (1024 - begin % 1024) % 1024;
    std::fill(shared.begin(), shared.end(), uchar(0xff));  // NaN
    memory = base + shared_offset;
  }
  void run(const std::function<void(uint)>& body);
  void yield() {
    akunu::metal::emulator::switch_fiber(threads[current].fiber, scheduler);
    if (!failure.empty()) throw Misuse(failure);
  }
  template <class Condition>
  void wait(const Condition& condition) {
    // Others may come first even where there is nothing to wait for.
    if (random() % 4 == 0) {
      ++progress;
      yield();
    }
    while (!condition()) yield();
    ++progress;
  }
  Barrier& barrier(ulong* at) {
    const uint place = address(at);
    if (place % 8 != 0) throw Misuse("a barrier off its alignment");
    for (auto& [own, state] : barriers)
      if (own == place) return state;
    throw Misuse("a barrier that was not begun");
  }
  void end_phase(Barrier& own) {
    ++progress;
    if (own.pending < 0) throw Misuse("more threads arrive at a barrier than it counts");
    if (own.pending > 0 || own.bytes != 0) return;
    own.phase ^= 1;
    own.pending = own.expected;
  }
  uint address(const void* at) const {
    const uchar* place = static_cast<const uchar*>(at);
    if (place < base || place >= base + kShared) throw Misuse("an address that is not shared");
    return uint(place - base);
  }
  void copy_some() {
    while (!copies.empty() && random() % 3 == 0) copy_one();
  }
  void copy_one() {
    const size_t which = random() % copies.size();
    const Copy copy = copies[which];
    copies.erase(copies.begin() + long(which));
    std::memcpy(copy.to, copy.from, copy.n_bytes);
    Barrier& own = barrier(copy.barrier);
    own.bytes -= int(copy.n_bytes);
    end_phase(own);
  }

  static constexpr size_t kShared = 232448;
  std::vector<Thread> threads;
  std::vector<Meeting> warps;
  uint64_t n_met = 0;
  std::vector<std::pair<uint, Barrier>> barriers;
  NamedBarrier named[16];
  std::vector<Copy> copies;
  std::mt19937 random;
  std::vector<uchar> shared;
  uchar* base;
  uchar* memory;
  uint current = 0;
  uint64_t progress = 0;
  std::string failure;
  akunu::metal::emulator::Fiber scheduler;
  const std::function<void(uint)>* body = nullptr;
};

inline Block* the_block = nullptr;
inline uint shared_address(const void* at) { return the_block->address(at); }
inline Thread& this_thread() { return the_block->threads[the_block->current]; }

inline void enter_thread() {
  akunu::metal::emulator::begin_fiber(the_block->scheduler);
  try {
    (*the_block->body)(the_block->current);
  } catch (const Misuse& misuse) {
    if (the_block->failure.empty()) the_block->failure = misuse.what();
  }
  this_thread().is_done = true;
  ++the_block->progress;
  akunu::metal::emulator::switch_fiber(this_thread().fiber, the_block->scheduler, true);
}

inline void Block::run(const std::function<void(uint)>& own_body) {
  static akunu::metal::emulator::StackPool stacks(1024, 0);
  stacks.reset();
  stacks.reserve(uint(threads.size()));
  the_block = this;
  body = &own_body;
  for (Thread& thread : threads)
    akunu::metal::emulator::prepare(thread.fiber, stacks.take(), enter_thread);
  std::vector<uint> order(threads.size());
  for (uint i = 0; i < order.size(); ++i) order[i] = i;
  // One warp runs in one turn of 16 only.
  const uint slow = uint(random() % warps.size());
  for (bool is_any = true; is_any;) {
    const uint64_t before = progress;
    const bool all_run = random() % 16 == 0;
    // Warps in any order, at times their lanes too.
    if (random() % 4 == 0) {
      std::shuffle(order.begin(), order.end(), random);
    } else {
      std::vector<uint> of_warps(warps.size());
      for (uint i = 0; i < of_warps.size(); ++i) of_warps[i] = i;
      std::shuffle(of_warps.begin(), of_warps.end(), random);
      for (uint i = 0; i < order.size(); ++i) order[i] = of_warps[i / kWarp] * kWarp + i % kWarp;
    }
    is_any = false;
    for (const uint i : order) {
      if (threads[i].is_done) continue;
      is_any = true;
      if (i / kWarp == slow && !all_run) continue;
      current = i;
      akunu::metal::emulator::switch_fiber(scheduler, threads[i].fiber);
      if (failure.empty() && i % kWarp == 0) copy_some();
    }
    if (progress == before && is_any && all_run && failure.empty()) {
      if (copies.empty())
        failure = "threads wait for ever";
      else
        copy_one();
    }
  }
  if (failure.empty() && !copies.empty()) failure = "a copy that nobody waited for";
  for (const NamedBarrier& own : named)
    if (failure.empty() && own.n_come != 0) failure = "a named barrier where some came for nothing";
  if (!failure.empty()) throw Misuse(failure);
}

}  // namespace gpu
