// Emulates on the CPU what streamed_rows.cuh, streamed_tile.cuh and rows_attention.cuh use in addition to warpgroup_words.h: products of F16
// numbers, with the fragments of mma.m16n8k16 and ldmatrix (PTX ISA, 9.7.14).
#pragma once

#include "warpgroup_words.h"

namespace gpu {

inline float4 operator+(float4 a, float4 b) {
  return float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
inline float simd_shuffle(float value, uint lane) {
  return as_type<float>(meet_warp(as_type<uint>(value), lane));
}
template <class T>
  requires std::is_integral_v<T>
T simd_shuffle_xor(T value, uint mask) {
  return T(meet_warp(uint(value), the_block->current % kWarp ^ mask));
}
template <class T>
T simd_sum(T value) {
  return over_warp(value, [](T a, T b) { return T(a + b); });
}
// What the launch before this one writes: until a thread of a block comes to inputs_ready it is not there.
inline std::function<void()> write_inputs;
inline void inputs_ready() {
  this_thread().is_ready = true;
  if (write_inputs) write_inputs();
}
inline void give_up() { throw Misuse("a kernel that gives up"); }

// Of eight rows of eight halves each of four matrices lane l gives the address of row l % 8 of matrix l / 8, and gets two halves of
// row l / 4 of each.
template <bool kTransposed = false>
void load_matrices(uint (&matrices)[4], const void* row) {
  static const uchar* rows[32][kWarp];  // of each warp
  const uint warp = the_block->current / kWarp, lane = the_block->current % kWarp;
  if (shared_address(row) % 16 != 0) throw Misuse("a row of a matrix off its alignment");
  meet_warp(0, 0);  // nobody reads those of the last matrices any more
  rows[warp][lane] = static_cast<const uchar*>(row);
  meet_warp(0, 0);
  for (uint i = 0; i < 4; ++i) {
    if (!kTransposed) {
      std::memcpy(&matrices[i], rows[warp][8 * i + lane / 4] + 4 * (lane % 4), 4);
      continue;
    }
    ushort both[2];
    for (uint j = 0; j < 2; ++j)
      std::memcpy(&both[j], rows[warp][8 * i + 2 * (lane % 4) + j] + 2 * (lane / 4), 2);
    matrices[i] = both[0] | uint(both[1]) << 16;
  }
}
// A lane gets two halves of column l / 4 of each.
inline void load_matrices_transposed(uint (&matrices)[4], const void* row) {
  load_matrices<true>(matrices, row);
}
// mma.m16n8k16 of halves, called by all lanes of a warp; lane 4 g + t has these fragments. A: of row g numbers 2 t and 2 t + 1, the
// same of row g + 8, and both eight columns further on. B: of column g likewise. D: rows g and g + 8 of columns 2 t and
// 2 t + 1. Added up as a wgmma is in warpgroup_words.h.
inline void multiply_float16(float (&sums)[4], const uint (&a)[4], uint b_upper, uint b_lower) {
  static uint operands[32][kWarp][6];  // of each warp
  const uint warp = the_block->current / kWarp, lane = the_block->current % kWarp;
  const uint g = lane / 4, t = lane % 4;
  auto& all = operands[warp];
  meet_warp(0, 0);
  std::copy(a, a + 4, all[lane]);
  all[lane][4] = b_upper;
  all[lane][5] = b_lower;
  meet_warp(0, 0);
  for (uint i = 0; i < 4; ++i) {
    const uint row = g + i / 2 * 8, column = 2 * t + i % 2;
    double sum = 0.0;
    for (uint k = 0; k < 16; ++k) {
      const uint of = k % 8 / 2, further = k / 8, shift = 16 * (k % 2);
      sum += double(half_value(all[row % 8 * 4 + of][2 * further + row / 8] >> shift & 0xffffu)) *
             half_value(all[column * 4 + of][4 + further] >> shift & 0xffffu);
    }
    sums[i] = float(sum + double(sums[i]));
  }
}

// Blocks of a launch run one after the other here.
inline std::vector<uint> arrivals;
inline bool last_to_meet(uint place, uint n, uint barrier, uint n_threads, uint thread_index,
                         uint* is_last) {
  meet_at(barrier, n_threads);
  if (thread_index == 0) {
    arrivals.resize(std::max<size_t>(arrivals.size(), place + 1));
    *is_last = ++arrivals[place] == n ? 1 : 0;
    if (*is_last != 0) arrivals[place] = 0;
  }
  meet_at(barrier, n_threads);
  return *is_last != 0;
}
struct uint2 {
  uint x, y;
};
// The last block of a cluster finishes all shares: those before it have ended then.
inline uint2 shares_after_cluster(uint place, uint, uint n_blocks, uint barrier, uint n_threads,
                                  uint thread_index) {
  static uint is_last;
  return last_to_meet(place, n_blocks, barrier, n_threads, thread_index, &is_last)
             ? uint2{0, n_blocks}
             : uint2{0, 0};
}
inline bool last_to_arrive(uint place, uint n) {
  static bool is_last;
  meet_block();
  if (the_block->current == 0) {
    arrivals.resize(std::max<size_t>(arrivals.size(), place + 1));
    is_last = ++arrivals[place] == n;
    if (is_last) arrivals[place] = 0;
  }
  meet_block();
  return is_last;
}

}  // namespace gpu
