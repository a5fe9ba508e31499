// multiply_prompt_tile of backend/cuda/kernels/warpgroup_tile.cuh on the CPU (warpgroup_words.h), as
// a function for test_warpgroup_tile.py.
#include <cstdio>

#include "cuda/kernels/warpgroup_tile.cuh"
#include "cuda/kernels/warpgroup_weights.cuh"

namespace gpu {
namespace {

struct Problem {
  uint32_t format, rows, seed, n_rows, n, k, first_row, accumulates;
  const float* input;
  const uint8_t* weight;
  const float* bias;  // null: none
  float* out;
  uint8_t* workspace;
};

template <class F>
void round_and_multiply(const Problem& problem) {
  static_assert(kSharedBytes <= kDynamicMemory);
  const RoundedInput<F::kParts> input{problem.workspace, problem.n_rows, problem.k};
  for (uint row = 0; row < input.padded(); ++row) {
    Block block(256, problem.seed + row, 16);
    block.run([&](uint thread) {
      round_row(problem.input + ulong(problem.first_row + row) * problem.k, input, row,
                reinterpret_cast<float*>(block.memory), thread, 256);
    });
  }
  TileOutput to{problem.out,
                problem.bias,
                problem.first_row,
                problem.n_rows,
                problem.n,
                problem.bias != nullptr,
                problem.accumulates != 0,
                0,
                0};
  uint seed = problem.seed;
  for (to.column = 0; to.column < to.n; to.column += kWeightRows)
    for (to.row = 0; to.row < to.n_rows; to.row += problem.rows) {
      ++seed;
      Block block(384, seed, seed % 64 * 16);
      block.run([&](uint thread) {
        if (problem.rows == 128) {
          multiply_prompt_tile<F, 128>(input, problem.weight, to, block.memory, thread);
        } else if constexpr (F::kNumbers == 256) {
          if (problem.rows == 32)
            multiply_prompt_tile<F, 32>(input, problem.weight, to, block.memory, thread);
          else
            multiply_prompt_tile<F, 64>(input, problem.weight, to, block.memory, thread);
        } else {
          throw Misuse("no such tile");
        }
      });
    }
}

}  // namespace
}  // namespace gpu

extern "C" {

// Enough for either kind of input.
uint64_t workspace_bytes(uint32_t n_rows, uint32_t k) {
  const gpu::RoundedInput<2> input{nullptr, n_rows, k};
  return reinterpret_cast<uint64_t>(input.factors() + input.padded());
}

// 0, or 1 and what was misused.
int32_t round_and_multiply(const gpu::Problem* problem, char* message, uint32_t message_bytes) {
  using namespace gpu;
  using Multiply = void (*)(const Problem&);
  constexpr Multiply kFormats[] = {
      gpu::round_and_multiply<Q4_0Weights>, gpu::round_and_multiply<Q4_1Weights>,
      gpu::round_and_multiply<Q5_0Weights>, gpu::round_and_multiply<Q5_1Weights>,
      gpu::round_and_multiply<Q8_0Weights>, gpu::round_and_multiply<Q3_KWeights>,
      gpu::round_and_multiply<Q4_KWeights>, gpu::round_and_multiply<Q5_KWeights>,
      gpu::round_and_multiply<Q6_KWeights>, gpu::round_and_multiply<F16Weights>,
      gpu::round_and_multiply<BF16Weights>};
  try {
    kFormats[problem->format](*problem);
  } catch (const Misuse& misuse) {
    std::snprintf(message, message_bytes, "%s", misuse.what());
    return 1;
  }
  return 0;
}
}
