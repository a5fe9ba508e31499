// stream_tiles of backend/cuda/kernels/streamed_rows.cuh on the CPU (streamed_words.h), as a function for
// test_streamed_rows.py.
#include <cstdio>
#include <type_traits>

#include "cuda/kernels/streamed_rows.cuh"
#include "cuda/kernels/streamed_tile.cuh"

namespace gpu {
namespace {

struct Problem {
  uint32_t format, quads, seed, n_rows, n, k;
  uint32_t n_stages, chunk, n_slots, pass;     // the plan
  uint32_t n_multiprocessors, n_parts, bytes;  // of the launch
  uint32_t by_tiles;          // of 16 rows: tiles, in place of tiles of 16 weight rows
  uint32_t on_warpgroups;     // of tiles
  const float *input, *norm;  // norm null: none
  const uint8_t* weight;
  float* out;      // [n_rows][n]
  float* squares;  // [n_rows]
  uint8_t* workspace;
};

// Rounds the input rows into the workspace; rows that the problem does not have are zeros.
template <uint kQuads>
void round_rows(const Problem& problem, uint& seed) {
  for (uint row = 0; row < RoundedRows<kQuads>::kRows; ++row) {
    Block block(kStreamThreads, ++seed, 16);
    block.run([&](uint thread) {
      const uint from = row < problem.n_rows ? row : 0;
      round_row_of_several<kQuads>(problem.input + ulong(from) * problem.k, problem.norm,
                                   problem.norm != nullptr, problem.k, problem.workspace, row,
                                   row < problem.n_rows, thread);
    });
  }
}

template <class F, uint kQuads>
void multiply(const Problem& problem) {
  const uint k = problem.k, n = problem.n, n_tiles = (n + kStreamTileRows - 1) / kStreamTileRows;
  const bool normalise = problem.norm != nullptr;
  uint seed = problem.seed;
  if constexpr (kQuads != 0) round_rows<kQuads>(problem, seed);
  // Weights in whole pieces of 16 bytes.
  const ulong weight_bytes = ulong(n) * (k / kStreamWindow) * F::kWindowBytes;
  const uchar* const begin = problem.weight - reinterpret_cast<ulong>(problem.weight) % 16;
  readable = {{begin, begin + (problem.weight - begin + weight_bytes + 15) / 16 * 16, false}};
  if constexpr (kQuads != 0)
    readable.push_back(
        {problem.workspace, problem.workspace + rounded_group_bytes<kQuads>(k), true});
  // Of one row the input is no number until it is ready.
  std::vector<float4> late((ulong(problem.n_rows) * k + 3) / 4);
  float* const input = &late[0].x;
  const StreamPlan plan{problem.n_stages, problem.chunk, problem.n_slots, problem.pass};
  const StreamInput from{input, problem.norm, normalise, problem.workspace, problem.n_rows};
  const ulong row_bytes = ulong(k / kStreamWindow) * F::kWindowBytes;
  for (uint block_index = 0; block_index < problem.n_multiprocessors * problem.n_parts;
       ++block_index) {
    const StreamShare share{block_index / problem.n_parts, problem.n_multiprocessors,
                            block_index % problem.n_parts, problem.n_parts};
    Block block(kStreamThreads + (kQuads == 0 ? 32 : 64), ++seed, seed % 8 * 128);
    std::fill(input, input + ulong(problem.n_rows) * k, NAN);
    write_inputs = [&] { std::copy_n(problem.input, ulong(problem.n_rows) * k, input); };
    // Memory that the plan does not have stays as it is.
    std::vector<uchar> behind(block.memory + problem.bytes, block.base + Block::kShared);
    block.run([&](uint thread) {
      stream_tiles<F, kQuads, kStreamTileRows>(
          block.memory, plan, from, n_tiles, k, share, thread,
          [&](uint tile, uint r) {
            return problem.weight + min(kStreamTileRows * tile + r, n - 1) * row_bytes;
          },
          [](uint tile, uint output, uint row) { return float(tile * 1000 + 16 * output + row); },
          [&](uint tile, uint output, uint row, float addend, const auto& sum_at,
              const float* squares) {
            if (addend != float(tile * 1000 + 16 * output + row)) throw Misuse("another addend");
            const uint at = kStreamTileRows * tile + output;
            if (at >= n) return;
            problem.out[row * n + at] = sum_at(output);
            problem.squares[row] = sum_of_squares(squares);
          });
    });
    write_inputs = nullptr;
    if (!std::equal(behind.begin(), behind.end(), block.memory + problem.bytes))
      throw Misuse("more shared memory than the plan has");
  }
}

// The same by tiles: n_parts blocks for each.
template <class F, uint kQuads, bool kOnWarpgroups = true>
void multiply_tiles_of(const Problem& problem) {
  const uint k = problem.k, n = problem.n;
  const bool normalise = problem.norm != nullptr;
  uint seed = problem.seed;
  round_rows<kQuads>(problem, seed);
  const ulong row_bytes = ulong(k / kStreamWindow) * F::kWindowBytes;
  const uchar* const begin = problem.weight - reinterpret_cast<ulong>(problem.weight) % 16;
  readable = {
      {begin, begin + (problem.weight - begin + ulong(n) * row_bytes + 15) / 16 * 16, false},
      {problem.workspace, problem.workspace + rounded_group_bytes<kQuads>(k), true}};
  const StreamInput from{problem.input, problem.norm, normalise, problem.workspace, problem.n_rows};
  using Memory = TileMemory<F, kQuads>;
  constexpr uint kRows = kTileRows<F>;
  std::vector<float4> sums(kStreamWarps * kRows * kQuads);
  const uint n_tiles = (n + kRows - 1) / kRows;
  for (uint block_index = 0; block_index < n_tiles * problem.n_parts; ++block_index) {
    const uint tile = block_index / problem.n_parts;
    const TilePart part{block_index % problem.n_parts, problem.n_parts, tile, &sums[0].x};
    Block block(Memory::kThreads + kCopyThreads, ++seed, seed % 8 * 128);
    std::vector<uchar> behind(block.memory + Memory::kBytes, block.base + Block::kShared);
    block.run([&](uint thread) {
      stream_tile<F, kQuads, kOnWarpgroups>(
          block.memory, from, part, k, thread,
          TileWeights<F>::of(problem.weight, kRows * tile, n, k),
          [](uint output, uint row) { return float(64 * output + row); },
          [&](uint output, uint row, float addend, const auto& sum_at, const float* squares) {
            if (addend != float(64 * output + row)) throw Misuse("another addend");
            const uint at = kRows * tile + output;
            if (at >= n) return;
            problem.out[row * n + at] = sum_at(output);
            problem.squares[row] = sum_of_squares(squares);
          });
    });
    if (!std::equal(behind.begin(), behind.end(), block.memory + Memory::kBytes))
      throw Misuse("more shared memory than a tile has");
  }
}

template <class F>
void multiply_rows(const Problem& problem) {
  switch (problem.quads) {
    case 0:
      return multiply<F, 0>(problem);
    case 1:
      return multiply<F, 1>(problem);
    case 2:
      return multiply<F, 2>(problem);
    case 4:
      return problem.by_tiles != 0 ? multiply_tiles_of<F, 4>(problem) : multiply<F, 4>(problem);
    case 8:
      // (Without warpgroups one format is enough.)
      if constexpr (std::is_same_v<F, Q6_KStreamed>)
        if (problem.on_warpgroups == 0) return multiply_tiles_of<F, 8, false>(problem);
      return multiply_tiles_of<F, 8>(problem);
    default:
      return multiply_tiles_of<F, 16>(problem);
  }
}

}  // namespace
}  // namespace gpu

extern "C" {

// 0, or 1 and what was misused.
int32_t multiply_rows(const gpu::Problem* problem, char* message, uint32_t message_bytes) {
  using namespace gpu;
  using Multiply = void (*)(const Problem&);
  constexpr Multiply kFormats[] = {
      gpu::multiply_rows<Q4_0Streamed>, gpu::multiply_rows<Q4_1Streamed>,
      gpu::multiply_rows<Q5_0Streamed>, gpu::multiply_rows<Q5_1Streamed>,
      gpu::multiply_rows<Q8_0Streamed>, gpu::multiply_rows<Q3_KStreamed>,
      gpu::multiply_rows<Q4_KStreamed>, gpu::multiply_rows<Q5_KStreamed>,
      gpu::multiply_rows<Q6_KStreamed>};
  int32_t is_misused = 0;
  try {
    kFormats[problem->format](*problem);
  } catch (const Misuse& misuse) {
    std::snprintf(message, message_bytes, "%s", misuse.what());
    is_misused = 1;
  }
  // Other drivers of the same process share these.
  readable.clear();
  arrivals.clear();
  write_inputs = nullptr;
  return is_misused;
}
}
