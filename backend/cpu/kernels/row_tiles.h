// Which row tile multiplies how many rows, and packing the input rows for it.
//
// 1. A few rows (few_rows) take the direct tile, more the packed one. With AVX-512 twelve rows from
//    packed panels are 1.3 (Q4_0) to 2.2 times (Q2_K) as fast in cache as from a direct tile, whose
//    registers spill. docs/decisions/weights-and-formats-on-the-cpu.md.
// 2. Packing input rows is for all panels of a slice: once for up to 64 rows.
#pragma once

#include "cpu/kernels/row_tile.h"
#include "cpu/kernels/row_tile_int16.h"
#include "cpu/kernels/row_tile_multi_panel.h"
#include "cpu/kernels/row_tile_packed.h"
#include "cpu/kernels/row_tile_two_byte.h"

namespace akunu::cpu {

template <class Isa>
struct ChooseManyRowTile {
  using Packed = PackedRowTile<typename Isa::Columns>;
};
template <class Isa>
  requires(Isa::Columns::Policy::kMultiPanelRows > 0)
struct ChooseManyRowTile<Isa> {
  using Packed = MultiPanelRowTile<PackedRowTile<typename Isa::Columns>, 2,
                                   Isa::Columns::Policy::kMultiPanelRows>;
};
template <class Isa>
  requires requires { typename Isa::ManyRowTile; }
struct ChooseManyRowTile<Isa> {
  using Packed = typename Isa::ManyRowTile;
};
// A level's row tile for many rows.
template <class Isa>
using ManyRowTileOf = typename ChooseManyRowTile<Isa>::Packed;

// The row tiles of a format: Direct for a few rows, Packed for more.
template <class Isa, class Format, class Input = typename Format::Input>
struct RowTilesFor {
  using Direct = DirectRowTile<typename Isa::Columns>;
  using Packed = ManyRowTileOf<Isa>;
};
template <class Isa, class Format>
struct RowTilesFor<Isa, Format, Quant16Input<Isa>> {
  using Direct = Int16RowTile<typename Isa::Columns>;
  using Packed = MultiPanelRowTile<Direct, 2, Direct::kTileRows>;
};
template <class Isa>
struct ChooseManyTwoByteRowTile {
  using Packed = TwoByteRowTile<typename Isa::Columns>;
};
template <class Isa>
  requires(Isa::Columns::Policy::kMultiPanelRows > 0)
struct ChooseManyTwoByteRowTile<Isa> {
  using Packed = MultiPanelRowTile<TwoByteRowTile<typename Isa::Columns>, 2,
                                   Isa::Columns::Policy::kMultiPanelRows>;
};
template <class Isa, class Format>
struct RowTilesFor<Isa, Format, TwoByteInput<Isa>> {
  using Direct = TwoByteRowTile<typename Isa::Columns>;
  using Packed = typename ChooseManyTwoByteRowTile<Isa>::Packed;
};

// Up to so many rows are multiplied by the direct tile, in one tile. With more rows registers
// spill, sooner with super-blocks, which have two sums a row: 16 rows took up to twice as long.
template <class RowTile, class Format>
static constexpr uint32_t few_rows() {
  if (RowTile::Packed::kRows > 1) return 2;
  constexpr uint32_t kTile = RowTile::Direct::kTileRows, kFit = Format::kSuperBlock ? 6 : 8;
  return kTile < kFit ? kTile : kFit;
}

// Bytes that n rows take when packed, or what `prepare` makes of them; pack_rows makes it.
template <class RowTile, class Format>
static constexpr uint64_t packed_row_bytes(uint32_t n, uint32_t k) {
  return uint64_t{(n + RowTile::kRows - 1) / RowTile::kRows} * (k / 32) *
         RowTile::template kGroupBytes<Format>;
}
template <class Isa, class Format>
static inline InputRows pack_rows(const InputRows& rows, std::byte* room) {
  using RowTile = typename RowTilesFor<Isa, Format>::Packed;
  using Direct = typename RowTilesFor<Isa, Format>::Direct;
  const uint32_t n = rows.n, n_groups = rows.k / 32;
  const auto group_of = [&](uint32_t row, uint32_t g) {
    return Direct::of_row(rows.first + row * rows.stride, rows.k, g);
  };
  const auto prepare = [&]<class Row>() -> InputRows {
    if constexpr (Row::template kGroupBytes<Format> == 0 && Format::kRotation == 0) return rows;
    const uint64_t stride = packed_row_bytes<Row, Format>(1, rows.k);
    for (uint32_t row = 0; row < n; ++row)
      Row::template prepare<Format>(group_of(row, 0), n_groups, room + row * stride);
    return {rows.first, rows.stride, rows.k, n, room, stride};
  };
  if (n <= few_rows<RowTilesFor<Isa, Format>, Format>()) {
    if constexpr (Format::kRotation > 0)
      if (n == 1) Direct::template prepare_rotated<Format>(group_of(0, 0).codes, n_groups, room);
    return prepare.template operator()<Direct>();
  }
  if constexpr (RowTile::kRows == 1) {
    return prepare.template operator()<RowTile>();
  } else {
    const uint64_t stride = packed_row_bytes<RowTile, Format>(RowTile::kRows, rows.k);
    std::byte* out = room;
    for (uint32_t first = 0; first < n; first += RowTile::kRows)
      for (uint32_t g = 0; g < n_groups; ++g, out += RowTile::template kGroupBytes<Format>) {
        InputGroup groups[RowTile::kRows];
        for (uint32_t i = 0; i < RowTile::kRows; ++i)  // the last one fills up
          groups[i] = group_of(first + i < n ? first + i : n - 1, g);
        RowTile::template pack_rows<Format>(groups, out);
      }
    return {room, stride, rows.k, n};
  }
}

}  // namespace akunu::cpu
