// attend_prompt_tile of backend/cuda/kernels/warpgroup_attention.cuh on the CPU (warpgroup_words.h), as a function for
// test_warpgroup_attention.py.
#include <algorithm>
#include <cstdio>

#include "core/kernel_params.h"
#include "cuda/kernels/warpgroup_attention.cuh"

namespace gpu {
namespace {

struct Problem {
  akunu::AttentionParams params;
  uint32_t groups, seed, first_span, n_spans;
  const float* query;
  const ushort* keys;
  const ushort* values;
  float* out;
  const akunu::Row* rows;
  const uint32_t* pages;
  const akunu::Span* spans;
};

// As of kernels/warpgroup_attention.cu.
struct CachedPositions {
  const Problem& problem;
  const akunu::Row* rows;
  uint sequence, kv_head;

  struct Range {
    uint begin, end;
  };
  Range range(uint row) const {
    const uint end_of_window = rows[row].position + 1, window = problem.params.window;
    return {window != 0 && end_of_window > window ? end_of_window - window : 0,
            rows[row].kv_length};
  }
  ulong offset(uint position) const {
    const akunu::AttentionParams& params = problem.params;
    const uint page = akunu::page_of(problem.pages, params.page_table_base,
                                     params.page_table_stride, sequence, position);
    return akunu::kv_offset(page, params.n_kv_heads, kv_head, position % akunu::kPagePositions,
                            params.head_dim);
  }
  const ushort* keys(uint position) const { return problem.keys + offset(position); }
  const ushort* values(uint position) const { return problem.values + offset(position); }
};

template <uint kDims, uint kGroups>
void attend(const Problem& problem) {
  static_assert(AttentionStages<kDims, kGroups>::kBytes <= kDynamicMemory);
  constexpr uint kRows = kGroups * kQueryRows;
  const akunu::AttentionParams& params = problem.params;
  uint seed = problem.seed;
  for (uint s = 0; s < problem.n_spans; ++s) {
    const akunu::Span& span = problem.spans[problem.first_span + s];
    for (uint row = 0; row < span.n_rows; row += kRows)
      for (uint head = 0; head < params.n_heads; ++head) {
        const uint first_row = span.first_row + row;
        const ulong place = (ulong(first_row) * params.n_heads + head) * kDims;
        const AttentionTile tile{problem.query + place, problem.out + place, params.n_heads * kDims,
                                 std::min(kRows, span.n_rows - row), params.scale};
        const CachedPositions cache{problem, problem.rows + first_row, span.sequence,
                                    head / (params.n_heads / params.n_kv_heads)};
        ++seed;
        Block block(128 + kRows * 2, seed, seed % 64 * 16);
        block.run([&](uint thread) {
          attend_prompt_tile<kDims, kGroups>(tile, cache, block.memory, thread);
        });
      }
  }
}

}  // namespace
}  // namespace gpu

// 0, or 1 and what was misused.
extern "C" int32_t attend(const gpu::Problem* problem, char* message, uint32_t message_bytes) {
  try {
    const auto own = problem->params.head_dim == 64
                         ? (problem->groups == 1 ? gpu::attend<64, 1> : gpu::attend<64, 2>)
                         : (problem->groups == 1 ? gpu::attend<128, 1> : gpu::attend<128, 2>);
    own(*problem);
  } catch (const gpu::Misuse& misuse) {
    std::snprintf(message, message_bytes, "%s", misuse.what());
    return 1;
  }
  return 0;
}
