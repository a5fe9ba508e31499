// attend_row of backend/cuda/kernels/rows_attention.cuh on the CPU (streamed_words.h), as a function for test_rows_attention.py.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/kernel_params.h"
#include "cuda/kernels/rows_attention.cuh"

namespace gpu {
namespace {

struct Problem {
  akunu::AttentionParams params;
  uint32_t blocks, seed,
      own_rows;  // own_rows: keys and values of the row's span are not in the cache
  const float* query;
  const ushort* keys;
  const ushort* values;
  float* out;
  const akunu::Row* rows;
  const uint32_t* pages;
  const akunu::Span* spans;
  uint32_t first_row, n_rows;
};

// As of kernels/attention_rows.cu.
struct CachedUnits {
  const Problem& problem;
  uint sequence, kv_head;

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
struct OwnRows {
  const CachedUnits& cache;
  uint first, head_dim;

  void place(uint position, ushort* key, ushort* value, uint lane) const {
    for (uint d = lane; d < head_dim; d += 32) {
      key[d] = cache.keys(position)[d];
      value[d] = cache.values(position)[d];
    }
  }
};

constexpr uint kChunk = 8;

template <uint kDims, uint kHeads>
void attend(const Problem& problem) {
  const akunu::AttentionParams& params = problem.params;
  const uint dims = params.head_dim, per_kv_head = params.n_heads / params.n_kv_heads;
  const uint chunks = (per_kv_head + kChunk - 1) / kChunk;
  uint seed = problem.seed;
  std::vector<float> workspace(size_t{params.n_heads} * kRowSplits * (dims + 2), NAN);
  for (uint r = problem.first_row; r < problem.first_row + problem.n_rows; ++r) {
    const akunu::Row& own = problem.rows[r];
    const uint window = params.window;
    const uint begin = window != 0 && own.position + 1 > window ? own.position + 1 - window : 0;
    for (uint y = 0; y < params.n_kv_heads * chunks; ++y)
      for (uint x = 0; x < problem.blocks; ++x) {
        const uint kv_head = y / chunks, first = y % chunks * kChunk;
        const uint first_head = kv_head * per_kv_head + first;
        const AttendedRow row{begin,
                              own.kv_length,
                              min(kChunk, per_kv_head - first),
                              dims,
                              params.scale,
                              params.soft_cap,
                              problem.out + (ulong(r) * params.n_heads + first_head) * dims,
                              &workspace[size_t{first_head} * kRowSplits * (dims + 2)],
                              y};
        const bool attends = x < min(row.n_units(), kRowSplits);
        if (!attends && (x != 0 || row.n_units() != 0)) continue;
        ++seed;
        Block block(kRowThreads, seed, seed % 8 * 16);
        block.run([&](uint thread) {
          if (!attends) return write_zeros(row, thread);
          const RowMemory<kHeads> memory = row_memory<kHeads>(block.memory, dims);
          const CachedUnits cache{problem, own.sequence, kv_head};
          const uint first_own = problem.own_rows != 0
                                     ? problem.rows[problem.spans[own.span].first_row].position
                                     : akunu::kNone;
          const OwnRows own_rows{cache, first_own, dims};
          const SplitsOfBlock splits{x, problem.blocks};
          begin_row(memory, row, cache, first_own, splits, thread);
          for (uint head = thread / 32; head < kHeads; head += kRowWarps)
            split_query(memory,
                        head < row.n_queries
                            ? problem.query + (ulong(r) * params.n_heads + first_head + head) * dims
                            : nullptr,
                        head, dims, thread % 32);
          threadgroup_barrier(mem_flags::mem_none);
          attend_row<kDims>(memory, row, cache, own_rows, splits, thread);
        });
      }
  }
}

}  // namespace
}  // namespace gpu

// 0, or 1 and what was misused.
extern "C" int32_t attend(const gpu::Problem* problem, char* message, uint32_t message_bytes) {
  using namespace gpu;
  int32_t is_misused = 0;
  copies_are_for_wgmma = false;
  try {
    const bool few = problem->params.n_heads / problem->params.n_kv_heads <= 4;
    if (problem->params.head_dim <= 128)
      few ? gpu::attend<128, 4>(*problem) : gpu::attend<128, 8>(*problem);
    else
      few ? gpu::attend<256, 4>(*problem) : gpu::attend<256, 8>(*problem);
  } catch (const Misuse& misuse) {
    std::snprintf(message, message_bytes, "%s", misuse.what());
    is_misused = 1;
  }
  arrivals.clear();
  copies_are_for_wgmma = true;
  return is_misused;
}
