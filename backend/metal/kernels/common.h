// What every kernel sees: the contract's structs, the constant of bound slots, how a problem is
// recorded, and sums over a threadgroup.
//
// Kernels are written so that the bits of a row are its own: products that are added are explicit
// `fma`s (no compiler may choose otherwise), and elementary functions are those of functions.h.
#pragma once

#include <metal_stdlib>

#include "core/kernel_params.h"

using namespace metal;
using namespace akunu;

// Bit n: operand slot n is bound. Optional operands are asked for through it alone.
constant uint kBoundSlots [[function_constant(0)]];

inline bool is_bound(uint slot) { return (kBoundSlots >> slot & 1u) != 0; }

// The same as conditions of arguments: an optional operand that is not bound is no argument at all,
// and is named only where its condition was asked.
constant bool kIsBound1 = (kBoundSlots & 0x2u) != 0;
constant bool kIsBound2 = (kBoundSlots & 0x4u) != 0;
constant bool kIsBound3 = (kBoundSlots & 0x8u) != 0;
constant bool kIsBound4 = (kBoundSlots & 0x10u) != 0;
constant bool kIsBound5 = (kBoundSlots & 0x20u) != 0;
constant bool kIsBound6 = (kBoundSlots & 0x40u) != 0;
constant bool kIsBound7 = (kBoundSlots & 0x80u) != 0;
constant bool kIsBound8 = (kBoundSlots & 0x100u) != 0;
constant bool kIsBound9 = (kBoundSlots & 0x200u) != 0;
constant bool kIsBound10 = (kBoundSlots & 0x400u) != 0;
constant bool kIsBound14 = (kBoundSlots & 0x4000u) != 0;
constant bool kIsBound15 = (kBoundSlots & 0x8000u) != 0;
constant bool kIsBound17 = (kBoundSlots & 0x20000u) != 0;
constant bool kIsBound18 = (kBoundSlots & 0x40000u) != 0;
constant bool kIsBound20 = (kBoundSlots & 0x100000u) != 0;
constant bool kIsBound21 = (kBoundSlots & 0x200000u) != 0;

// From here on a kernel reads what launches before it wrote. Where launches overlap, on other GPUs, this waits for
// those.
inline void inputs_ready() {}

// Records the error of an active row and makes the row inactive. Only one thread writes a row at a
// time, so there is no race.
inline void record_status(device Status* statuses, device Row* rows, uint row, uint code,
                          uint detail) {
  if ((rows[row].flags & kRowActive) == 0) return;
  statuses[row] = Status{code, rows[row].position, detail, 0};
  rows[row].flags &= ~kRowActive;
}

inline float sum_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// The sum of what the threadgroup's threads hold, for all of them; `partial` has a float for each
// SIMD-group. The barrier before the write guards what an earlier call left there: reusing the
// scratch of a reduction without it lets a slow SIMD-group read the next one's numbers.
inline float threadgroup_sum(float value, threadgroup float* partial, uint simdgroup, uint lane,
                             uint n_simdgroups) {
  const float own = simd_sum(value);
  if (n_simdgroups == 1) return own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) partial[simdgroup] = own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(lane < n_simdgroups ? partial[lane] : 0.0f);
}

// Four numbers from any address that holds a whole one; zeros from `n` on.
template <class Number>
inline vec<Number, 4> load_some(device const Number* p, uint n) {
  vec<Number, 4> v = vec<Number, 4>(Number(0));
  if (n > 0) v.x = p[0];
  if (n > 1) v.y = p[1];
  if (n > 2) v.z = p[2];
  if (n > 3) v.w = p[3];
  return v;
}

// The same as floats, in one load where `aligned` says that all four are there and lie for it.
inline float4 load_numbers(device const float* p, uint n, bool aligned) {
  if (aligned) return *reinterpret_cast<device const float4*>(p);
  return load_some(p, n);
}
inline float4 load_numbers(device const half* p, uint n, bool aligned) {
  if (aligned) return float4(*reinterpret_cast<device const half4*>(p));
  return float4(load_some(p, n));
}
// bfloat16: the upper half of a float32.
inline float4 load_numbers(device const ushort* p, uint n, bool aligned) {
  ushort4 v;
  if (aligned)
    v = *reinterpret_cast<device const ushort4*>(p);
  else
    v = load_some(p, n);
  return as_type<float4>(uint4(v) << 16);
}

// row[i .. i + 4) of a row of k numbers, zeros past its end.
template <class Number>
inline float4 load_four(device const Number* row, uint i, uint k, bool aligned) {
  if (i >= k) return float4(0.0f);
  return load_numbers(row + i, k - i, aligned);
}
