// The input of a prompt's matmul, in parts for tensor cores; split_input.cuh says how they lie.
//
// Floor: 4 bytes in and 6 out for each number. A thread takes eight numbers of a row.
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/split_input.cuh"
#include "metal/kernels/common.cuh"

namespace gpu {

// Grid: every eight numbers of every row, rows as long as whole steps.
__device__ inline void split_eight(const float* input, uchar* to, const PassRange& pass, uint k,
                                   uint task) {
  const uint n_steps = (k + 31) / 32, per_row = 4 * n_steps;
  const SplitInput split = SplitInput{to, pass.n_rows, k};
  // Neighbours share a run; those past the end go along with the last.
  const uint row = min(task / per_row, pass.n_rows - 1), eight = task % per_row;
  const bool is_there = task / per_row < pass.n_rows;
  const float* from = input + ulong(pass.first_row + row) * k;
  float4 first = load_four(from, 8 * eight, k, k % 4 == 0);
  float4 second = load_four(from, 8 * eight + 4, k, k % 4 == 0);

  // Of sixteen: (x[0] + x[1]) + (x[2] + x[3]), four by four.
  const float4 both = first + second;
  const float4 other = float4(simd_shuffle_xor(both.x, 1), simd_shuffle_xor(both.y, 1),
                              simd_shuffle_xor(both.z, 1), simd_shuffle_xor(both.w, 1));
  if (!is_there) return;
  const uint step = eight / 4, run = eight / 2 % 2;
  if (eight % 2 == 0) const_cast<float*>(split.sums(step, run))[row] = sum_of(both + other);
  uchar* parts = const_cast<uchar*>(split.row(step, row)) + eight % 4 * 16;
#pragma unroll
  for (uint part = 0; part < kInputParts; ++part)
    *reinterpret_cast<uint4*>(parts + 64 * part) = take_part(first, second);
}

__device__ void split_input(const float* input, const PassRange& pass, uchar* split,
                            const MatmulParams& params, uint3 position) {
  split_eight(input, split, pass, params.k, position.x);
}

__device__ void split_input_of_group(const float* input, const PassRange& pass, uchar* split,
                                     const MatmulGroupParams& params, uint3 position) {
  split_eight(input, split, pass, params.k, position.x);
}

AKUNU_KERNEL(split_input, ) {
  inputs_ready();
  split_input(launch.slot(0), launch.pass(), launch.slot(24), launch.parameters(),
              thread_position());
}

AKUNU_KERNEL(split_input_of_group, ) {
  inputs_ready();
  split_input_of_group(launch.slot(0), launch.pass(), launch.slot(24), launch.parameters(),
                       thread_position());
}

}  // namespace gpu
