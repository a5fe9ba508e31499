// What the quantised matmuls (kernels/panel.h) do differently from level to level: every choice
// that a kernel makes by the kind of processor is a member here. A level's Columns name their
// policy, which overrides what differs.
//
// Two choices are types of the level itself: Isa::HalfWidth, the primitives for half as many
// columns (kHalfWidth), and Isa::ManyRowTile, a row tile of its own for many rows (isa/i8mm.h).
#pragma once

#include <stdint.h>

namespace akunu::cpu {

struct MatmulPolicy {
  // Register tiles: how many input rows they have. 0: the level has no such tiles.
  static constexpr uint32_t kTileRows = 2;  // over one panel; the codes fill half of 16 registers
  static constexpr uint32_t kMultiPanelRows = 0;  // over two panels at once
  static constexpr uint32_t kInt16Rows = 0;  // of the int16 path, over two panels; 0: no int16 path
  static constexpr uint32_t kProbeRows =
      0;  // of the roofline's probe, where a tile has too few to hide latencies
  // Rows of a direct tile that are interleaved product by product. 1: one after the other.
  static constexpr uint32_t kInterleavedRows = 1;

  // Products of codes.
  static constexpr uint32_t kSignedOffset =
      128;  // what signed_codes adds: the instruction takes unsigned codes
  static constexpr bool kSignedProducts =
      false;  // codes of more than 127 are multiplied as signed ones
  static constexpr bool kWholeBytes = false;    // codes of up to 255 cost no more than others
  static constexpr bool kWidensSigned = false;  // packed tiles multiply signed codes as int16
  static constexpr bool kInt16Scales =
      false;  // packed tiles multiply with scales of super-blocks as int16

  // Decoding.
  static constexpr bool kReadsEight = false;  // `transpose` also for 32 bytes of each column
  static constexpr bool kRotatesInput =
      false;  // a single row's codes are rotated instead of the weights'
  static constexpr bool kScalesInPlace =
      false;  // Q2_K's scales and minima stay where they lie: 32 registers
  static constexpr bool kSetsFifthBits = false;  // add_sixteen_where_set, for Q5_0 and Q5_1

  // Prefetching and panels that are larger than L1: see Kernel::l1_panel_bytes.
  static constexpr bool kPrefetchesIntoL1 = false;
  static constexpr bool kHalfWidth = false;
};

}  // namespace akunu::cpu
