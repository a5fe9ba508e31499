// Rounds the input of a prompt's matmul once for all tiles: to f16 (1), or to pairs of bfloat16 numbers (2); round_row
// of kernels/warpgroup_tile.h.
//
// Floor: each number is 4 bytes to read and 2.1 or 4 to write. A block has a row, padding rows included.
#include "cuda/kernels/warpgroup_matmul.h"

template <class Params, uint kParts>
[[kernel]] void round_input(device const float* input [[buffer(0)]],
                            constant PassRange& pass [[buffer(23)]],
                            device uchar* workspace [[buffer(24)]],
                            constant Params& params [[buffer(25)]],
                            threadgroup float* memory [[threadgroup(0)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]],
                            uint n_simdgroups [[simdgroups_per_threadgroup]]) {
  round_row(input + ulong(pass.first_row + group.x) * params.k,
            rounded_input<kParts>(workspace, pass.n_rows, params.k), group.x, memory, thread_index,
            32 * n_simdgroups);
}

#define AKUNU_ROUND_INPUT(name, Params, kParts)                                     \
  template [[host_name(name)]] [[kernel]] decltype(round_input<Params, kParts>)     \
      round_input<Params, kParts>;
AKUNU_ROUND_INPUT("round_input_1", MatmulParams, 1)
AKUNU_ROUND_INPUT("round_input_2", MatmulParams, 2)
AKUNU_ROUND_INPUT("round_input_of_group_1", MatmulGroupParams, 1)
AKUNU_ROUND_INPUT("round_input_of_group_2", MatmulGroupParams, 2)
