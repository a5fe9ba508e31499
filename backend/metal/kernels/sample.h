// What the sampler's steps share: reductions over the one threadgroup of a row, the order of
// candidates, the noise.
#pragma once

#include "metal/kernels/common.h"
#include "metal/kernels/functions.h"

// A row's threadgroup. How many threads it has follows from the vocabulary alone. `partial` holds
// two floats per SIMD-group; every reduction begins with a barrier, because a slow SIMD-group may
// still be reading what the one before left there.
struct Team {
  uint thread_index, simdgroup, lane, n_simdgroups, n_threads;
  threadgroup float* partial;
};

inline uint team_sum(Team team, uint value) {
  const uint own = simd_sum(value);
  if (team.n_simdgroups == 1) return own;
  threadgroup uint* partial = reinterpret_cast<threadgroup uint*>(team.partial);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (team.lane == 0) partial[team.simdgroup] = own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(team.lane < team.n_simdgroups ? partial[team.lane] : 0u);
}

inline uint team_min(Team team, uint value) {
  const uint own = simd_min(value);
  if (team.n_simdgroups == 1) return own;
  threadgroup uint* partial = reinterpret_cast<threadgroup uint*>(team.partial);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (team.lane == 0) partial[team.simdgroup] = own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_min(team.lane < team.n_simdgroups ? partial[team.lane] : 0xffffffffu);
}

// How many of the threads before this one's values add up to; `total` is the sum of all.
inline uint team_prefix(Team team, uint value, thread uint& total) {
  const uint before = simd_prefix_exclusive_sum(value);
  const uint own = simd_sum(value);
  if (team.n_simdgroups == 1) {
    total = own;
    return before;
  }
  threadgroup uint* partial = reinterpret_cast<threadgroup uint*>(team.partial);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (team.lane == 0) partial[team.simdgroup] = own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint of_lane = team.lane < team.n_simdgroups ? partial[team.lane] : 0u;
  total = simd_sum(of_lane);
  return before + simd_sum(team.lane < team.simdgroup ? of_lane : 0u);
}

// A token and what it is compared by: the larger value, the lower token on ties.
struct Candidate {
  float value;
  uint token;
};
inline bool is_better(Candidate a, Candidate b) {
  return a.value > b.value || (a.value == b.value && a.token < b.token);
}
inline Candidate simd_best(Candidate c) {
  const float value = simd_max(c.value);
  return Candidate{value, simd_min(c.value == value ? c.token : uint(kNone))};
}
inline Candidate team_best(Team team, Candidate c) {
  const Candidate own = simd_best(c);
  if (team.n_simdgroups == 1) return own;
  threadgroup uint* tokens = reinterpret_cast<threadgroup uint*>(team.partial + team.n_simdgroups);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (team.lane == 0) {
    team.partial[team.simdgroup] = own.value;
    tokens[team.simdgroup] = own.token;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  Candidate other = Candidate{-infinity(), kNone};
  if (team.lane < team.n_simdgroups) other = Candidate{team.partial[team.lane], tokens[team.lane]};
  return simd_best(other);
}

// A sum of masses as two floats, so that 256 thousand additions cost nothing: the bound on masses
// is 1e-6, and a plain sum of so many may be off by more.
struct Mass {
  float high, low;
};
inline Mass sum_of(Mass a, Mass b) {
  const float sum = a.high + b.high;
  const float from_b = sum - a.high;
  const float lost = (a.high - (sum - from_b)) + (b.high - from_b);
  return Mass{sum, a.low + b.low + lost};
}
inline bool reaches(Mass a, Mass b) { return (a.high - b.high) + (a.low - b.low) >= 0.0f; }
inline Mass simd_mass(Mass m) {
  for (ushort step = 1; step < 32; step *= 2)
    m = sum_of(m, Mass{simd_shuffle_xor(m.high, step), simd_shuffle_xor(m.low, step)});
  // The lanes added the same numbers in mirrored order; one of them speaks for all.
  return Mass{simd_broadcast_first(m.high), simd_broadcast_first(m.low)};
}
inline Mass team_mass(Team team, Mass m) {
  const Mass own = simd_mass(m);
  if (team.n_simdgroups == 1) return own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (team.lane == 0) {
    team.partial[team.simdgroup] = own.high;
    team.partial[team.n_simdgroups + team.simdgroup] = own.low;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  Mass other = Mass{0.0f, 0.0f};
  if (team.lane < team.n_simdgroups)
    other = Mass{team.partial[team.lane], team.partial[team.n_simdgroups + team.lane]};
  return simd_mass(other);
}

// Whole numbers in the order of floats that are not NaN; both zeros are one.
inline uint key_of(float z) {
  const uint bits = as_type<uint>(z == 0.0f ? 0.0f : z);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
inline float value_of(uint key) {
  return as_type<float>((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}

// Word 0 of Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3;
// 2011).
inline uint philox(uint4 counter, uint key_0, uint key_1) {
  for (uint round = 0; round < 10; ++round) {
    const uint high_0 = mulhi(0xD2511F53u, counter.x), low_0 = 0xD2511F53u * counter.x;
    const uint high_1 = mulhi(0xCD9E8D57u, counter.z), low_1 = 0xCD9E8D57u * counter.z;
    counter = uint4(high_1 ^ counter.y ^ key_0, low_1, high_0 ^ counter.w ^ key_1, low_0);
    key_0 += 0x9E3779B9u;
    key_1 += 0xBB67AE85u;
  }
  return counter.x;
}

constant constexpr float kLargestNoise = 17.5f;  // of u = 1 - 2^-25: 25 ln 2 = 17.33

// -ln(-ln u), u = ((word >> 8) + 0.5) 2^-24. Between 1/2 and 1, u has 25 bits and no float of its
// own; 1 - u has one, and near 1 it is what the logarithm needs.
inline float gumbel(uint word) {
  const uint step = word >> 8;
  const float from_zero = (float(step) + 0.5f) * 0x1p-24f;
  const float from_one = (float(0xffffffu - step) + 0.5f) * 0x1p-24f;
  const float logarithm = from_zero < 0x1.6a09e6p-1f ? log_of(from_zero) : log_near_one(-from_one);
  return -log_of(-logarithm);
}
