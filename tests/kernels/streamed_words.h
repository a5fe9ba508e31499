// Emulates on the CPU what streamed_rows.h uses beside the functions of warpgroup_words.h: products of int8 numbers, with the
// fragments of mma.m16n8k32 and m16n8k16 (PTX ISA, 9.7.14).
#pragma once

#include "warpgroup_words.h"

namespace gpu {

struct alignas(8) uint2 {
  uint x, y;
  uint2() = default;
  uint2(uint a, uint b) : x(a), y(b) {}
};
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

// mma.m16n8k(16 kWords) of int8 numbers, called by all lanes of a warp; lane 4 g + t has these fragments. A: of rows g and
// g + 8 a word with columns 4 t to 4 t + 3, and with kWords = 2 the same 16 columns further on. B: of column g a word with rows 4 t
// to 4 t + 3, likewise. D: rows g and g + 8 of columns 2 t and 2 t + 1.
template <uint kWords>
void multiply_words(int (&sums)[4], const uint (&a)[2 * kWords], const uint (&b)[kWords]) {
  static uint operands[32][kWarp][6];  // of each warp
  const uint warp = the_block->current / kWarp, lane = the_block->current % kWarp;
  const uint g = lane / 4, t = lane % 4;
  auto& all = operands[warp];
  meet_warp(0, 0);  // nobody reads those of the last product any more
  std::copy(a, a + 2 * kWords, all[lane]);
  std::copy(b, b + kWords, all[lane] + 4);
  meet_warp(0, 0);
  const auto byte = [](uint word, uint index) {
    return int(static_cast<signed char>(word >> 8 * index & 255u));
  };
  for (uint i = 0; i < 4; ++i) {
    const uint row = g + i / 2 * 8, column = 2 * t + i % 2;
    int64_t sum = sums[i];
    for (uint k = 0; k < 16 * kWords; ++k) {
      const uint of = k % 16 / 4, word = k / 16;
      sum += byte(all[row % 8 * 4 + of][2 * word + row / 8], k % 4) *
             byte(all[column * 4 + of][4 + word], k % 4);
    }
    if (sum != int(sum)) throw Misuse("a sum of products is too large");
    sums[i] = int(sum);
  }
}
inline void multiply_bytes(int (&sums)[4], const uint (&a)[4], uint b_upper, uint b_lower) {
  multiply_words<2>(sums, a, {b_upper, b_lower});
}
inline void multiply_bytes_16(int (&sums)[4], uint a_upper, uint a_lower, uint b) {
  multiply_words<1>(sums, {a_upper, a_lower}, {b});
}

}  // namespace gpu
