// add, add_bias, gated_activation, gather_head, split_heads, join_rows, soft_cap, scale: a thread per number, neighbours side by side.
// Floor: the operands' bytes. The fused kernels do all of this in passing; these serve prompts and
// what nothing fuses. Grid: (columns / 256, rows).
#include "metal/kernels/common.h"
#include "metal/kernels/functions.h"

// data[r, t, j] += other[r, j]
[[kernel]] void add(device float* data [[buffer(0)]], device const float* other [[buffer(1)]],
                    constant PassRange& pass [[buffer(23)]],
                    constant AddParams& params [[buffer(25)]],
                    uint3 position [[thread_position_in_grid]]) {
  const uint n_times = max(params.n_times, 1u);
  if (position.x >= params.n * n_times) return;
  const ulong row = pass.first_row + position.y;
  const ulong i = row * params.n * n_times + position.x;
  data[i] = data[i] + other[row * params.n + position.x % params.n];
}

// data[r, j] += bias[j]
[[kernel]] void add_bias(device float* data [[buffer(0)]], device const float* bias [[buffer(1)]],
                         constant PassRange& pass [[buffer(23)]],
                         constant BiasParams& params [[buffer(25)]],
                         uint3 position [[thread_position_in_grid]]) {
  if (position.x >= params.n) return;
  const ulong i = ulong(pass.first_row + position.y) * params.n + position.x;
  data[i] = data[i] + bias[position.x];
}

// out[r, j] = act(gate[r, j]) * up[r, up_first + j]
[[kernel]] void gated_activation(device const float* gate [[buffer(0)]],
                                 device const float* up [[buffer(1)]],
                                 device float* out [[buffer(2)]],
                                 constant PassRange& pass [[buffer(23)]],
                                 constant GatedActivationParams& params [[buffer(25)]],
                                 uint3 position [[thread_position_in_grid]]) {
  if (position.x >= params.n) return;
  const ulong row = pass.first_row + position.y;
  const ulong i = row * params.n + position.x;
  const uint up_stride = params.up_stride != 0 ? params.up_stride : params.n;
  const float x = gate[i];
  out[i] = (params.activation == kActivationSilu      ? silu(x)
            : params.activation == kActivationGelu    ? gelu(x)
            : params.activation == kActivationSigmoid ? sigmoid(x)
                                                      : gelu_tanh(x)) *
           up[row * up_stride + params.up_first + position.x];
}

// out[head_row] = input[r] for rows with a head row
[[kernel]] void gather_head(device const float* input [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            constant PassRange& pass [[buffer(23)]],
                            constant GatherParams& params [[buffer(25)]],
                            device const Row* rows [[buffer(26)]],
                            uint3 position [[thread_position_in_grid]]) {
  if (position.x >= params.dim) return;
  const uint row = pass.first_row + position.y;
  const uint head_row = rows[row].head_row;
  if (head_row == kNone) return;
  out[ulong(head_row) * params.dim + position.x] = input[ulong(row) * params.dim + position.x];
}

// data = cap * tanh(data / cap)
[[kernel]] void soft_cap(device float* data [[buffer(0)]], constant PassRange& pass [[buffer(23)]],
                         constant SoftCapParams& params [[buffer(25)]],
                         uint3 position [[thread_position_in_grid]]) {
  if (position.x >= params.n) return;
  const ulong i = ulong(pass.first_row + position.y) * params.n + position.x;
  data[i] = params.cap * tanh_of(data[i] / params.cap);
}

// data = data * factor
[[kernel]] void scale(device float* data [[buffer(0)]], constant PassRange& pass [[buffer(23)]],
                      constant ScaleParams& params [[buffer(25)]],
                      uint3 position [[thread_position_in_grid]]) {
  if (position.x >= params.n) return;
  const ulong i = ulong(pass.first_row + position.y) * params.n + position.x;
  data[i] = data[i] * params.factor;
}

// Each head of the input has 2 * head_dim numbers: the first half goes to out, the second to rest.
[[kernel]] void split_heads(device const float* input [[buffer(0)]],
                            device float* out [[buffer(1)]], device float* rest [[buffer(2)]],
                            constant PassRange& pass [[buffer(23)]],
                            constant SplitHeadsParams& params [[buffer(25)]],
                            uint3 position [[thread_position_in_grid]]) {
  const uint dim = params.head_dim, n = params.n_heads * dim;
  if (position.x >= n) return;
  const ulong row = pass.first_row + position.y;
  device const float* head =
      input + row * 2 * n + ulong(position.x / dim) * 2 * dim + position.x % dim;
  out[row * n + position.x] = head[0];
  rest[row * n + position.x] = head[dim];
}

// out = (first, second, third), of which the third may be absent.
[[kernel]] void join_rows(device const float* first [[buffer(0)]],
                          device const float* second [[buffer(1)]],
                          device const float* third [[buffer(2), function_constant(kIsBound2)]],
                          device float* out [[buffer(3)]],
                          constant PassRange& pass [[buffer(23)]],
                          constant JoinRowsParams& params [[buffer(25)]],
                          uint3 position [[thread_position_in_grid]]) {
  const uint n_first = params.n_first, n_both = n_first + params.n_second;
  const uint n = n_both + params.n_third, i = position.x;
  if (i >= n) return;
  const ulong row = pass.first_row + position.y;
  if (i < n_first)
    out[row * n + i] = first[row * n_first + i];
  else if (i < n_both)
    out[row * n + i] = second[row * params.n_second + (i - n_first)];
  else if (kIsBound2)
    out[row * n + i] = third[row * params.n_third + (i - n_both)];
}
