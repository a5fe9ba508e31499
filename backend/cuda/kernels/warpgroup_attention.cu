// attention of prompts on warpgroups: heads of 64 and 128 dimensions, a cache of halves (kernels/warpgroup_attention.cuh)
//
// Grid: (n_heads, tiles of 64 or 128 rows); neighbouring blocks read the same keys and values. Tiles begin with the last one,
// whose rows see most.
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/warpgroup_attention.cuh"
#include "metal/kernels/attention_split.cuh"

namespace gpu {

// The positions of one sequence and kv head, for the rows of a tile.
struct CachedPositions {
  const ushort* key_cache;
  const ushort* value_cache;
  const Row* rows;  // of the tile
  const uint* pages;
  uint sequence, n_kv_heads, kv_head, head_dim, window, page_table_base, page_table_stride;

  __device__ Visible range(uint row) const { return visible_to(rows[row], window); }
  __device__ ulong offset(uint position) const {
    const uint page = page_of(pages, page_table_base, page_table_stride, sequence, position);
    return kv_offset(page, n_kv_heads, kv_head, position % kPagePositions, head_dim);
  }
  __device__ const ushort* keys(uint position) const { return key_cache + offset(position); }
  __device__ const ushort* values(uint position) const { return value_cache + offset(position); }
};

template <uint kDims, uint kGroups>
__device__ void warpgroup_attention(const float* query, const ushort* key_cache,
                                    const ushort* value_cache, float* out, const PassRange& pass,
                                    const AttentionParams& params, const Row* rows,
                                    const uint* pages, const Span* spans, uchar* memory,
                                    uint3 group, uint thread_index) {
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
  const Span& span = spans[span_index];
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

// A warpgroup multiplies, or two, and four warps copy.
#define AKUNU_WARPGROUP_ATTENTION(dims, n)                                                       \
  AKUNU_KERNEL(warpgroup_attention_d##dims##_x##n, __launch_bounds__(128 * n + 128, 1)) {        \
    inputs_ready();                                                                              \
    warpgroup_attention<dims, n>(launch.slot(0), launch.slot(1), launch.slot(2), launch.slot(3), \
                                 launch.pass(), launch.parameters(), launch.slot(26),            \
                                 launch.slot(27), launch.slot(30), launch.shared(0),             \
                                 block_index(), threadIdx.x);                                    \
  }
AKUNU_WARPGROUP_ATTENTION(64, 1)
AKUNU_WARPGROUP_ATTENTION(64, 2)
AKUNU_WARPGROUP_ATTENTION(128, 1)
AKUNU_WARPGROUP_ATTENTION(128, 2)

}  // namespace gpu
