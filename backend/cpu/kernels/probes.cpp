// The loops of probes.h. Tiles are the matmuls' own: as many sums as the level has registers for.
#include "cpu/kernels/probes.h"

#include "cpu/isa/isa.h"
#include "cpu/kernels/float_panel.h"
#include "cpu/kernels/row_tiles.h"

namespace akunu::cpu {
namespace {

// The prefetch distance: without prefetches this loop reads less than matmuls do, which have them.
constexpr uint64_t kPrefetchFloats = 4096 / sizeof(float);

template <class Isa>
float read(const float* values, uint64_t n) {
  constexpr uint32_t kChains = 8;
  static_assert(kProbeStep % (kChains * Isa::kLanes) == 0);
  typename Isa::Vector sums[kChains];
  for (uint32_t i = 0; i < kChains; ++i) sums[i] = Isa::zero();
  constexpr uint32_t kLine = kCacheLine / sizeof(float);
  for (uint64_t done = 0; done < n; done += kChains * Isa::kLanes)
    for (uint32_t i = 0; i < kChains; ++i) {
      const float* const from = values + done + i * Isa::kLanes;
      if (i * Isa::kLanes % kLine == 0) __builtin_prefetch(from + kPrefetchFloats, 0, kIntoL2);
      sums[i] = Isa::add(sums[i], Isa::load(from));
    }
  float sum = 0;
  for (uint32_t i = 0; i < kChains; ++i) sum += Isa::sum_lanes(sums[i]);
  return sum;
}

// Numbers whose products stay small and cancel out.
template <class Number, uint32_t kRows, uint32_t kDepth = kProbeDepth>
struct Operands {
  Number rows[kRows][kDepth];
  Operands() {
    for (uint32_t r = 0; r < kRows; ++r)
      for (uint32_t k = 0; k < kDepth; ++k)
        rows[r][k] = static_cast<Number>((k + r) % 2 == 0 ? 1 : -1);
  }
};

// With the registers and the tile of float_panel.h.
template <class Isa>
uint64_t multiply_floats(uint64_t repeats, float* result) {
  constexpr uint32_t kRows = Isa::kTileRows, kColumns = Isa::kTileRegisters;
  const Operands<float, kRows> inputs;
  const Operands<float, kColumns> weights;
  typename Isa::Vector sums[kRows][kColumns];
  for (uint32_t r = 0; r < kRows; ++r)
    for (uint32_t c = 0; c < kColumns; ++c) sums[r][c] = Isa::zero();
  for (uint64_t i = 0; i < repeats; ++i) {
    for (uint32_t k = 0; k < kProbeDepth; k += Isa::kLanes) {
      typename Isa::Vector columns[kColumns];
      for (uint32_t c = 0; c < kColumns; ++c) columns[c] = Isa::load(weights.rows[c] + k);
      for (uint32_t r = 0; r < kRows; ++r) {
        const typename Isa::Vector row = Isa::load(inputs.rows[r] + k);
        for (uint32_t c = 0; c < kColumns; ++c)
          sums[r][c] = Isa::multiply_add(row, columns[c], sums[r][c]);
      }
    }
  }
  *result = 0;
  for (uint32_t r = 0; r < kRows; ++r)
    for (uint32_t c = 0; c < kColumns; ++c) *result += Isa::sum_lanes(sums[r][c]);
  return repeats * 2 * kRows * kColumns * kProbeDepth;
}

// Of int8 or, with kNumberBytes = 2, of int16.
template <class Isa, class RowTile, uint32_t kNumberBytes = 1>
uint64_t multiply_codes_in(uint64_t repeats, float* result) {
  using Columns = typename Isa::Columns;
  constexpr uint32_t kRegisters = 8 / RowTile::kRows, kSums = RowTile::kTileRows / RowTile::kRows;
  constexpr uint32_t kDepth = kProbeDepth * RowTile::kRows, N = RowTile::interleaved_rows(kSums);
  const Operands<int8_t, kSums, kDepth> inputs;
  typename RowTile::Ints codes[kRegisters], sums[kSums];
  for (uint32_t j = 0; j < kRegisters; ++j) codes[j] = RowTile::integers(0x01020304u + j);
  for (uint32_t r = 0; r < kSums; ++r) sums[r] = RowTile::integers(0);
  for (uint64_t i = 0; i < repeats; ++i)
    for (uint32_t k = 0; k < kDepth; k += 32 * RowTile::kRows)
      for (uint32_t r = 0; r < kSums; r += N) {
        typename RowTile::Ints some[N];
        const int8_t* x[N];
#pragma GCC unroll 16
        for (uint32_t j = 0; j < N; ++j) {
          some[j] = sums[r + j];
          x[j] = inputs.rows[r + j] + k;
        }
        RowTile::template dot<15, kRegisters>(some, codes, x);
#pragma GCC unroll 16
        for (uint32_t j = 0; j < N; ++j) sums[r + j] = some[j];
      }
  *result = 0;
  for (uint32_t r = 0; r < kSums; ++r) {
    const typename RowTile::Floats floats[1] = {RowTile::to_float(sums[r])};
    const auto& rows = RowTile::rows(floats);
    for (uint32_t i = 0; i < RowTile::kRows; ++i)
      for (uint32_t p = 0; p < RowTile::kPanels; ++p) {
        float lanes[Columns::kCount];
        Columns::store(lanes, RowTile::of_panel(rows[i], p));
        for (const float lane : lanes) *result += lane;
      }
  }
  return repeats * 2 * RowTile::kTileRows * RowTile::kPanels * Columns::kCount * kProbeDepth /
         kNumberBytes;
}

// With codes that stay in registers, so of one panel; of two where that makes too few sums for an instruction
// that takes its time.
template <class Row>
constexpr auto in_probe() {
  using Columns = typename Row::Registers;
  if constexpr (Columns::Policy::kProbeRows > 0)
    return MultiPanelRowTile<Row, 2, Columns::Policy::kProbeRows>{};
  else
    return Row{};
}

template <class Isa>
uint64_t multiply_bytes(uint64_t repeats, float* result) {
  if constexpr (ManyRowTileOf<Isa>::kPanels > 1)
    return multiply_codes_in<Isa, decltype(in_probe<PackedRowTile<typename Isa::Columns>>())>(
        repeats, result);
  else
    return multiply_codes_in<Isa, ManyRowTileOf<Isa>>(repeats, result);
}

template <class Isa>
constexpr auto multiply_pairs() {
  if constexpr (Isa::Columns::Policy::kInt16Rows > 0)
    return multiply_codes_in<Isa, decltype(in_probe<Int16RowTile<typename Isa::Columns>>()), 2>;
  else
    return nullptr;
}

}  // namespace

template <>
Probes probes<ThisIsa>() {
  return {read<ThisIsa>, multiply_floats<FloatTile<ThisIsa>>, multiply_bytes<ThisIsa>,
          multiply_pairs<ThisIsa>(), nullptr};
}

}  // namespace akunu::cpu
