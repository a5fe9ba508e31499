// Dot products of several rows with the codes of a panel, or of several panels side by side
// (kernels/row_tile.h). The rows are interleaved: every row uses a register of codes before the
// next one is loaded, so each load of codes serves all rows, and each load of a row all panels.
//
// 1. What bounds it. The multipliers, where the registers suffice for all sums.
// 2. What is done about it. An empty assembly statement behind each product (`add`) keeps the
//    order of instructions: GCC made a tree of each row's sum, one row after the other, and
//    spilled. With AVX2 that took Q4_0 from 98 to 114 * 10^9 products a second (one Zen 4 core,
//    four rows).
// 3. What did not pay. With AVX-512 on that core interleaving gave nothing, since its products
//    already took all the time. docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include <stdint.h>

#include <bit>

namespace akunu::cpu {

// The register of one panel, out of a single register or of one for each panel.
template <class Registers>
static inline auto& at(Registers& registers, [[maybe_unused]] uint32_t panel) {
  if constexpr (requires { registers.of; })
    return registers.of[panel];
  else
    return registers;
}

// sums[i] = add(sums[i], codes[j], the j-th four bytes at x[i]) for each of kRegisters, in every panel. `add`
// must keep the compiler from reassociating: GCC makes a tree of each row's sum, one row after the other, and
// spills registers.
template <class Columns, uint32_t kRegisters, class Registers, uint32_t N>
static inline void dot_interleaved(Registers (&sums)[N], const Registers* codes, const auto (&x)[N],
                                   const auto& add) {
  constexpr uint32_t kPanels = sizeof(Registers) / sizeof(typename Columns::Ints);
#pragma GCC unroll 16
  for (uint32_t j = 0; j < kRegisters; ++j)
#pragma GCC unroll 8
    for (uint32_t i = 0; i < N; ++i) {
      const auto four = Columns::broadcast_four(x[i] + 4 * j);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kPanels; ++p)
        at(sums[i], p) = add(at(sums[i], p), at(codes[j], p), four);
    }
}

// sums[i] += the products of int16 codes in pairs with those at x[i]; sums of one panel, or of several.
template <class Columns, uint32_t kRegisters, class Registers, uint32_t N>
static inline void dot_int16(Registers (&sums)[N], const Registers* codes,
                             const int8_t* const (&x)[N]) {
  using Ints = typename Columns::Ints;
  dot_interleaved<Columns, kRegisters>(sums, codes, x, [](Ints sum, Ints some, Ints two) {
    return Columns::add_pairs(sum, some, two);
  });
}

// The same for one row and one panel. The codes of the upper half are kUpperFactor times too large
// (a power of two); their sum is divided by it. Eight registers are summed in two dependency
// chains: the instruction has a latency of four or five cycles, and whole numbers may be added in
// any order. Four registers need one chain: other dot products overlap with it.
template <class Columns, uint32_t kRegisters, uint32_t kUpperFactor = 1>
static inline void dot_in_chains(typename Columns::Ints& sum, const typename Columns::Ints* codes,
                                 const auto& x, const auto& add) {
  constexpr uint32_t kChains = kRegisters > 4 ? 2 : 1;
  constexpr int kShift = std::countr_zero(kUpperFactor);
  auto second = Columns::integers(0);
#pragma GCC unroll 8
  for (uint32_t j = 0; j < kRegisters; ++j) {
    auto& chain = j % kChains == 0 ? sum : second;
    const uint32_t i = kShift > 0 ? j / 2 + j % 2 * (kRegisters / 2) : j;
    chain = add(chain, codes[i], Columns::broadcast_four(x + 4 * i));
  }
  if constexpr (kShift > 0) second = Columns::template shift_right_signed<kShift>(second);
  if constexpr (kChains == 2) sum = Columns::add(sum, second);
}

}  // namespace akunu::cpu
