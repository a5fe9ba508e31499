// Many input rows times weights of floats.
//
// 1. What it computes. The sums of matmul_tile.h, bit for bit: eight lanes along k for every (input
//    row, weight row), in order of k.
// 2. What bounds it. The multipliers; of 113 Gop/s that one Intel core can do, 107 in L1. Beyond
//    that, reading the input.
// 3. What is done about it. A panel of kPanelColumns weight rows becomes float32 once for all rows
//    of a slice, kPanelDepth of k at a time: that stays in L1 (24 KiB), and the input rows stream
//    past it. Accumulators wait in scratch from one part of k to the next. Where a register has
//    sixteen lanes, two weight rows are side by side in it, eight lanes each: one multiplication
//    makes the bits of two.
// 4. What was tried and did not pay. Packed input rows in L2 (10 % slower), software prefetches of
//    the next rows (4 %), depths of 256 and 1024 (2 and 6 %). docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

constexpr uint32_t kPanelColumns = 12;  // every tile's number of columns divides it
constexpr uint32_t kPanelDepth = 512;   // 256 and 1024 are slower by 2 and 6 %

// A register of a tile: eight lanes along k of kTogether weight rows.
template <class Isa>
struct FloatTile : Isa {
  static constexpr uint32_t kTogether = 1;
  static constexpr uint32_t kTileRegisters = Isa::kFloatTileColumns;
  // Eight numbers of an input row, for each weight row.
  static typename Isa::Vector spread(typename Isa::Vector input) { return input; }
};
template <class Isa>
  requires(Isa::Wide::kLanes == 2 * Isa::kLanes)
struct FloatTile<Isa> : Isa::Wide {
  static constexpr uint32_t kTogether = 2;
  static typename Isa::Wide::Vector spread(typename Isa::Vector input) {
    return Isa::Wide::twice(input);
  }
};

template <class Isa, class Format>
struct FloatPanel {
  using Tile = FloatTile<Isa>;
  using Row = typename Format::Input::Row;
  static constexpr uint32_t kLanes = Isa::kLanes;
  static constexpr uint32_t kRegisters = Tile::kTileRegisters;
  static constexpr uint32_t kTileColumns = kRegisters * Tile::kTogether;
  static_assert(kPanelColumns % kTileColumns == 0);

  static constexpr uint64_t scratch_bytes(uint32_t n_rows) {
    return sizeof(float) * (kWeights + uint64_t{n_rows} * kPanelColumns * kLanes);
  }

  // `n_inputs` rows times weight rows [begin, end), at most kPanelColumns; out(r, sums, n) receives
  // the results, n of a row. `scratch`: scratch_bytes of as many rows, aligned to 64.
  template <class Out>
  static inline void multiply(const Row* inputs, uint32_t n_inputs, const std::byte* weights,
                              uint64_t row_bytes, uint32_t begin, uint32_t end, uint32_t k,
                              std::byte* scratch, const Out& out) {
    float* const panel = reinterpret_cast<float*>(scratch);
    float* const sums = panel + kWeights;
    const Rows rows{weights + begin * row_bytes, row_bytes, end - begin};
    for (uint32_t from = 0; from < k; from += kPanelDepth) {
      const Part part{from, k - from < kPanelDepth ? k - from : kPanelDepth};
      unpack(rows, part, panel);
      uint32_t r = 0;
      for (; r + Tile::kTileRows <= n_inputs; r += Tile::kTileRows)
        multiply_rows<Tile::kTileRows>(inputs + r, part, panel, sums_of(sums, r));
      for (; r < n_inputs; ++r) multiply_rows<1>(inputs + r, part, panel, sums_of(sums, r));
    }
    for (uint32_t r = 0; r < n_inputs; ++r) {
      const float* const lanes = sums_of(sums, r);
      float results[kPanelColumns];
      for (uint32_t c = 0; c < kPanelColumns; c += 4) {
        typename Isa::Vector four[4];
        for (uint32_t i = 0; i < 4; ++i) four[i] = Isa::load(lanes + (c + i) * kLanes);
        Isa::store_sums(results + c, four);
      }
      out(r, results, rows.n);
    }
  }

 private:
  static constexpr uint64_t kWeights = uint64_t{kPanelColumns} * kPanelDepth;

  struct Rows {
    const std::byte* first;
    uint64_t stride;
    uint32_t n;
  };
  struct Part {
    uint32_t from, count;  // of k
  };
  static float* sums_of(float* sums, uint32_t row) {
    return sums + uint64_t{row} * kPanelColumns * kLanes;
  }
  static uint64_t tile_floats(const Part& part) {
    return uint64_t{(part.count + kLanes - 1) / kLanes} * kTileColumns * kLanes;
  }

  // Tile by tile, block by block of kLanes, column by column; zeros for columns that are not there.
  static inline void unpack(const Rows& rows, const Part& part, float* panel) {
    const uint32_t begin = part.from / kLanes, n_blocks = part.count / kLanes;
    const uint32_t rest = part.count % kLanes;
    for (uint32_t c = 0; c < kPanelColumns; ++c) {
      const std::byte* const row = rows.first + c * rows.stride;
      float* to = panel + c / kTileColumns * tile_floats(part) + c % kTileColumns * kLanes;
      for (uint32_t b = 0; b < n_blocks; ++b, to += kTileColumns * kLanes)
        Isa::store(to, c < rows.n ? Format::unpack(row, begin + b) : Isa::zero());
      if (rest != 0)
        Isa::store(to, c < rows.n ? Format::unpack_tail(row, begin + n_blocks, rest) : Isa::zero());
    }
  }

  // R input rows times all tiles of a panel.
  template <uint32_t R>
  static inline void multiply_rows(const Row* inputs, const Part& part, const float* panel,
                                   float* sums) {
    for (uint32_t c = 0; c < kPanelColumns; c += kTileColumns, panel += tile_floats(part))
      multiply_tile<R>(inputs, part, panel, sums + c * kLanes);
  }

  // sums[r][c] += input row r . column c; R rows times one tile.
  template <uint32_t R>
  static inline void multiply_tile(const Row* inputs, const Part& part, const float* panel,
                                   float* sums) {
    constexpr uint32_t kStep = Tile::kTogether * kLanes;
    typename Tile::Vector tile[R][kRegisters];
    for (uint32_t r = 0; r < R; ++r)
      for (uint32_t c = 0; c < kRegisters; ++c)
        tile[r][c] = part.from == 0 ? Tile::zero()
                                    : Tile::load(sums + r * kPanelColumns * kLanes + c * kStep);
    const auto add = [&](const auto& input) {
      typename Tile::Vector weights[kRegisters];
      for (uint32_t c = 0; c < kRegisters; ++c) weights[c] = Tile::load(panel + c * kStep);
      for (uint32_t r = 0; r < R; ++r) {
        const typename Tile::Vector numbers = Tile::spread(input(r));
        for (uint32_t c = 0; c < kRegisters; ++c)
          tile[r][c] = Tile::multiply_add(weights[c], numbers, tile[r][c]);
      }
      panel += kRegisters * kStep;
    };
    const uint32_t end = part.from + part.count, rest = part.count % kLanes;
    uint32_t i = part.from;
    for (; i + kLanes <= end; i += kLanes)
      add([&](uint32_t r) { return Isa::load(inputs[r].values + i); });
    if (rest != 0) add([&](uint32_t r) { return Isa::load(inputs[r].values + i, rest); });
    for (uint32_t r = 0; r < R; ++r)
      for (uint32_t c = 0; c < kRegisters; ++c)
        Tile::store(sums + r * kPanelColumns * kLanes + c * kStep, tile[r][c]);
  }
};

}  // namespace akunu::cpu
