// The row tile of q16_32 against codes of a byte: a code of the input is split into two bytes, each
// of which is multiplied as a code of q8_32 is.
//
// 1. What it computes. code = 128 * high + low, with |high| <= 64 and -64 <= low < 64; so a dot
//    product is 128 times that of the high bytes, plus that of the low ones: exact, and below 2^27.
// 2. What bounds it. The multipliers: there are twice as many products as for q8_32. Multiplying
//    pairs of int16 instead would take as many multiply instructions, and others to widen the
//    weights' codes to int16 first.
// 3. What is done about it. Bytes are split, and brought into the order in which the format has its
//    codes (`kCodesTogether`), once for all panels of a slice (`prepare`).
#pragma once

#include "cpu/kernels/row_tile.h"

namespace akunu::cpu {

template <class Columns>
struct TwoByteRowTile : DirectRowTile<Columns> {
  using Direct = DirectRowTile<Columns>;
  using typename Columns::Ints;
  static constexpr uint32_t kLowBits = 7;

  // The sum of the input's codes: where a dot product starts, for a level whose products take
  // signed codes only. It is shifted with the high bytes: 128 times the sum is what 128 taken off
  // every weight leaves out.
  template <class Format>
  static constexpr uint32_t kStarts = Format::kIsShifted ? 1 : 0;
  template <class Format>
  static constexpr uint64_t kGroupBytes = 64 + 4 * (kStarts<Format> + 1);

  static InputGroup of_row(const std::byte* row, uint32_t k, uint32_t g) {
    return {reinterpret_cast<const int8_t*>(row) + uint64_t{64} * g,
            reinterpret_cast<const float*>(row + uint64_t{2} * k) + g, nullptr, nullptr};
  }
  template <class Format>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    InputGroup group = of_row(row.codes, k, g);
    group.prepared = row.prepared + g * kGroupBytes<Format>;
    group.codes = reinterpret_cast<const int8_t*>(group.prepared);
    group.prepared += 64;
    return group;
  }

  // 32 high bytes, 32 low ones, the sum of codes as a float, and as an integer where it is a start.
  template <class Format>
  static void prepare(const InputGroup& first, uint32_t n_groups, std::byte* out) {
    const int8_t* codes = first.codes;
    for (uint32_t g = 0; g < n_groups; ++g, codes += 64, out += kGroupBytes<Format>) {
      Codes q;
      __builtin_memcpy(&q, codes, sizeof(q));
      const Codes high = (q + 64) >> kLowBits, low = q - (high << kLowBits);
      put<Format::kCodesTogether>(high, out);
      put<Format::kCodesTogether>(low, out + 32);
      int32_t sum = 0;
      for (uint32_t i = 0; i < 32; ++i) sum += q[i];
      store_number(out + 64, static_cast<float>(sum));
      if constexpr (kStarts<Format> != 0) store_number(out + 68, sum);
    }
  }
  template <class Format, uint32_t, uint32_t>
  static Ints start(const InputGroup& group) {
    if constexpr (kStarts<Format> == 0) return Columns::integers(0);
    return Columns::integers(load_unaligned<uint32_t>(group.prepared + 4));
  }
  template <class Format>
  static typename Columns::Floats sum(const InputGroup& group, uint32_t) {
    return Direct::sum_at(group, 0);
  }

  template <uint32_t kLargest, uint32_t kRegisters, class Registers, uint32_t N>
  static void dot(Registers (&sums)[N], const Registers* codes, const int8_t* const (&x)[N]) {
    constexpr uint32_t kPanels = sizeof(Registers) / sizeof(Ints);
    const int8_t* low[N];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < N; ++i) low[i] = x[i] + 32;
    if constexpr (requires {
                    Columns::template dot_halves<kLargest, kRegisters>(sums, codes, x);
                  }) {
      Columns::template dot_halves<kLargest, kRegisters>(sums, codes, x);
    } else if constexpr (N == 1 && kPanels == 1) {  // two chains, neither waits for the other
      Ints of_low[1] = {Columns::integers(0)};
      Columns::template dot<kLargest, kRegisters>(sums, codes, x);
      Columns::template dot<kLargest, kRegisters>(of_low, codes, low);
      sums[0] = Columns::add(Columns::template shift_left<kLowBits>(sums[0]), of_low[0]);
    } else {
      Columns::template dot<kLargest, kRegisters>(sums, codes, x);
#pragma GCC unroll 16
      for (uint32_t i = 0; i < N; ++i)
#pragma GCC unroll 4
        for (uint32_t p = 0; p < kPanels; ++p)
          at(sums[i], p) = Columns::template shift_left<kLowBits>(at(sums[i], p));
      Columns::template dot<kLargest, kRegisters>(sums, codes, low);
    }
  }

 private:
  typedef int16_t Codes __attribute__((vector_size(64)));
  typedef int8_t Bytes __attribute__((vector_size(32)));

  // Of every `kTogether` registers' worth of codes, one from each comes before the next: register j,
  // byte b is code 4 * kTogether * (j / kTogether) + kTogether * b + j % kTogether.
  template <uint32_t kTogether>
  static void put(const Codes& codes, std::byte* out) {
    Bytes bytes = __builtin_convertvector(codes, Bytes);
    if constexpr (kTogether == 2)
      bytes = __builtin_shufflevector(bytes, bytes, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11,
                                      13, 15, 16, 18, 20, 22, 17, 19, 21, 23, 24, 26, 28, 30, 25,
                                      27, 29, 31);
    if constexpr (kTogether == 4)
      bytes = __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7,
                                      11, 15, 16, 20, 24, 28, 17, 21, 25, 29, 18, 22, 26, 30, 19,
                                      23, 27, 31);
    __builtin_memcpy(out, &bytes, sizeof(bytes));
  }
};

}  // namespace akunu::cpu
