// attention of prompts on warpgroups: heads of 64 and 128 dimensions, a cache of halves (kernels/warpgroup_attention.h)
//
// Grid: (n_heads, tiles of 64 or 128 rows); neighbouring blocks read the same keys and values. Tiles begin with the last one,
// whose rows see most.
#include "metal/kernels/attention_split.h"

// generate.py puts warpgroup.h, warpgroup_tile.h and warpgroup_attention.h in the place of this.
inline void attend_prompt_tile() {}

// The positions of one sequence and kv head, for the rows of a tile.
struct CachedPositions {
  device const ushort* key_cache;
  device const ushort* value_cache;
  device const Row* rows;  // of the tile
  device const uint* pages;
  uint sequence, n_kv_heads, kv_head, head_dim, window, page_table_base, page_table_stride;

  Visible range(uint row) const { return visible_to(rows[row], window); }
  ulong offset(uint position) const {
    const uint page = page_of(pages, page_table_base, page_table_stride, sequence, position);
    return kv_offset(page, n_kv_heads, kv_head, position % kPagePositions, head_dim);
  }
  device const ushort* keys(uint position) const { return key_cache + offset(position); }
  device const ushort* values(uint position) const { return value_cache + offset(position); }
};

template <uint kDims, uint kGroups>
[[kernel]] void warpgroup_attention(
    device const float* query [[buffer(0)]], device const ushort* key_cache [[buffer(1)]],
    device const ushort* value_cache [[buffer(2)]], device float* out [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]], constant AttentionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    device const Span* spans [[buffer(30)]], threadgroup uchar* memory [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr uint kRows = kGroups * kQueryRows;
  uint tiles = 0;
  for (uint i = 0; i < pass.n_spans; ++i)
    tiles += (spans[pass.first_span + i].n_rows + kRows - 1) / kRows;
  if (group.y >= tiles) return;
  uint tile_index = tiles - 1 - group.y, span_index = pass.first_span;
  for (;; ++span_index) {
    const uint of_span = (spans[span_index].n_rows + kRows - 1) / kRows;
    if (tile_index < of_span) break;
    tile_index -= of_span;
  }
  device const Span& span = spans[span_index];
  const uint first_row = span.first_row + tile_index * kRows;
  const ulong place = (ulong(first_row) * params.n_heads + group.x) * kDims;
  const AttentionTile tile =
      AttentionTile{query + place, out + place, params.n_heads * kDims,
                    min(kRows, span.n_rows - tile_index * kRows), params.scale};
  const CachedPositions cache = CachedPositions{key_cache,
                                                value_cache,
                                                rows + first_row,
                                                pages,
                                                span.sequence,
                                                params.n_kv_heads,
                                                group.x / (params.n_heads / params.n_kv_heads),
                                                kDims,
                                                params.window,
                                                params.page_table_base,
                                                params.page_table_stride};
  attend_prompt_tile<kDims, kGroups>(tile, cache, memory, thread_index);
}

#define AKUNU_WARPGROUP_ATTENTION(dims, n) \
  template [[host_name(                    \
      "warpgroup_attention_d" #dims        \
      "_x" #n)]] [[kernel]] decltype(warpgroup_attention<dims, n>) warpgroup_attention<dims, n>;
AKUNU_WARPGROUP_ATTENTION(64, 1)
AKUNU_WARPGROUP_ATTENTION(64, 2)
AKUNU_WARPGROUP_ATTENTION(128, 1)
AKUNU_WARPGROUP_ATTENTION(128, 2)
