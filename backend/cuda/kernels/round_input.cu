// Rounds the input of a prompt's matmul once for all tiles: to f16 (1), or to pairs of bfloat16 numbers (2); round_row
// of kernels/warpgroup_tile.cuh.
//
// Floor: each number is 4 bytes to read and 2.1 or 4 to write. A block has a row, padding rows included.
#include "cuda/kernels/warpgroup_matmul.cuh"

namespace gpu {

template <class Params, uint kParts>
__device__ void round_input(const float* input, const PassRange& pass, uchar* workspace,
                            const Params& params, float* memory, uint3 group, uint thread_index,
                            uint n_simdgroups) {
  round_row(input + ulong(pass.first_row + group.x) * params.k,
            rounded_input<kParts>(workspace, pass.n_rows, params.k), group.x, memory, thread_index,
            32 * n_simdgroups);
}

#define AKUNU_ROUND_INPUT(name, Params, parts)                                                    \
  AKUNU_KERNEL(name, ) {                                                                          \
    take_constants(launch);                                                                       \
    inputs_ready();                                                                               \
    round_input<Params, parts>(launch.slot(0), launch.pass(), launch.slot(24),                    \
                               launch.parameters(), launch.shared(0), block_index(), threadIdx.x, \
                               (blockDim.x + 31) / 32);                                           \
  }
AKUNU_ROUND_INPUT(round_input_1, MatmulParams, 1)
AKUNU_ROUND_INPUT(round_input_2, MatmulParams, 2)
AKUNU_ROUND_INPUT(round_input_of_group_1, MatmulGroupParams, 1)
AKUNU_ROUND_INPUT(round_input_of_group_2, MatmulGroupParams, 2)

}  // namespace gpu
