// How attention on the int16 path (attention_int16.cpp) divides a call into slices, and what a
// worker's scratch holds. A slice has up to kQueries query heads, so that what is unpacked of a
// page is used by many; 512 of them were 4 % faster, but half as many slices (docs/decisions/prompts-on-the-cpu.md).
#pragma once

#include "core/kernel_params.h"
#include "cpu/kernels/attention_range.h"
#include "cpu/kernels/formats_int16.h"
#include "cpu/kernels/multiply_panels.h"

namespace akunu::cpu {

constexpr uint32_t kQueries = 256;  // of a slice: what unpacked keys and values are used for
constexpr uint32_t kStep = 32;      // positions
constexpr uint32_t kPageSteps = kPagePositions / kStep;

// Queries, or weights, as packed panels: kPanels side by side.
template <class Isa, uint32_t kPanels>
struct Int16Panels : Int16Weights<Isa, F16<Isa>> {};
template <class Isa, uint32_t kPanels>
struct RowTilesFor<Isa, Int16Panels<Isa, kPanels>, Quant16Input<Isa>> {
  using Direct = Int16RowTile<typename Isa::Columns>;
  using Packed = MultiPanelRowTile<Direct, kPanels, Direct::kTileRows>;
};

// How a call is divided. Queries of a kv head are numbered row by row, in blocks of kLanes.
template <class Isa>
struct Int16Tiling {
  using Input = Quant16Input<Isa>;
  static constexpr uint32_t kCount = Isa::Columns::kCount, kPanels = 2;
  using Group = PackedGroup<Isa, Int16Panels<Isa, kPanels>>;
  static constexpr uint32_t kLanes = kCount * kPanels;

  Int16Tiling(const AttentionParams& params, uint32_t out_group)
      : group(params.n_heads / params.n_kv_heads),
        unit(
            heads_of_whole_groups(params.n_kv_heads, uint64_t{group} * params.head_dim, out_group)),
        units((params.n_kv_heads + unit - 1) / unit),
        block_rows(group < kQueries ? kQueries / group : 1),
        blocks((group * block_rows + kLanes - 1) / kLanes),
        head_groups(Input::whole(params.head_dim) / kStep),
        head_dim(params.head_dim),
        dims(round_up(params.head_dim, kCount)),
        out_numbers(uint64_t{unit} * group * params.head_dim) {}

  uint32_t group;        // query heads per kv head
  uint32_t unit, units;  // kv heads per slice; slices per block of rows
  uint32_t block_rows;   // rows of a slice
  uint32_t blocks;       // of queries of a kv head
  uint32_t head_groups;  // groups of 32 dimensions
  uint32_t head_dim, dims;
  uint64_t out_numbers;  // of a row of a slice's result

  uint64_t key_bytes() const { return Input::row_bytes(kStep * head_groups); }  // of a row
  static uint64_t value_bytes() { return Input::row_bytes(kPagePositions); }    // of a dimension
  uint64_t block_sums() const { return uint64_t{dims} * kLanes; }
  uint64_t scores() const {
    return uint64_t{dims > kPagePositions ? dims : kPagePositions} * kLanes;
  }
};

// What a slice keeps while it walks the pages of its kv heads.
template <class Isa>
struct Int16State {
  using Layout = Int16Tiling<Isa>;

  Int16State(const Layout& layout, std::byte* scratch) {
    const auto begin = reinterpret_cast<uintptr_t>(scratch);
    const auto take = [&]<class T>(T*& part, uint64_t n) {
      part = reinterpret_cast<T*>(begin + bytes);
      bytes += (n * sizeof(T) + kCacheLine - 1) / kCacheLine * kCacheLine;
    };
    take(queries, layout.blocks * layout.head_groups);
    take(weights, kPageSteps);
    take(query_rows, Layout::kLanes * layout.key_bytes());
    take(keys, kPagePositions * layout.key_bytes());
    take(values, layout.dims * layout.value_bytes());
    take(pairs, layout.dims / Layout::kCount * (kStep / 2));
    take(magnitudes, kStep * layout.head_groups);
    take(wholes, kStep * layout.head_groups);
    take(scales, kStep * layout.head_groups);
    take(value_scales, kPagePositions);
    take(scores, layout.scores());
    take(sums, layout.unit * layout.blocks * layout.block_sums());
    take(largest, layout.unit * layout.blocks * Layout::kLanes);
    take(denominators, layout.unit * layout.blocks * Layout::kLanes);
    take(out, layout.out_numbers + Isa::kLanes);
  }
  static uint64_t bytes_of(const Layout& layout) { return Int16State(layout, nullptr).bytes; }

  uint64_t bytes = 0;  // of scratch

  typename Layout::Group* queries;     // [blocks][head_groups], of the kv head at hand
  typename Layout::Group* weights;     // [8 steps], of a block's queries and a page
  std::byte* query_rows;               // q16_32 [kLanes], before they are packed into `queries`
  std::byte* keys;                     // q16_32 [256], of the page at hand
  std::byte* values;                   // q16_32 [dims], likewise: a row of positions per dimension
  typename Isa::Columns::Ints* pairs;  // [dims / kCount][16], of a step, before they are transposed
  uint16_t* magnitudes;                // of a step's rows, or of their groups of 32: the largest
  float *wholes, *scales;              // the Rounding16 of each of those
  float* value_scales;                 // of the page's positions
  float* scores;                       // [256][kLanes], then the weights
  float* sums;                         // [unit][blocks][dims][kLanes]: of the pages before
  float *largest, *denominators;       // [unit][blocks][kLanes]: of scores times `factor`; likewise
  float* out;                          // a row of the slice's result
};

}  // namespace akunu::cpu
