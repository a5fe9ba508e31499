// The row tile of the int16 path: rows of q16_32, whose codes are multiplied in pairs. No offsets,
// no minima: nothing to prepare.
#pragma once

#include "cpu/isa/dot_interleaved.h"
#include "cpu/kernels/row_tile.h"

namespace akunu::cpu {

template <class Columns>
struct Int16RowTile : DirectRowTile<Columns> {
  static constexpr uint32_t kTileRows = Columns::Policy::kInt16Rows;
  static constexpr uint32_t interleaved_rows(uint32_t n) { return n; }
  template <class>
  static constexpr uint32_t kCodes = 16;

  template <class>
  static InputGroup group(const InputRow& row, uint32_t k, uint32_t g) {
    return {reinterpret_cast<const int8_t*>(row.codes) + uint64_t{64} * g,
            reinterpret_cast<const float*>(row.codes + uint64_t{2} * k) + g, nullptr, nullptr};
  }
  template <uint32_t, uint32_t kRegisters>
  static void dot(auto& sums, const auto* codes, const auto& x) {
    dot_int16<Columns, kRegisters>(sums, codes, x);
  }
};

}  // namespace akunu::cpu
