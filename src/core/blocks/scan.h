// The selective scan of Mamba-2 (Dao and Gu, 2024). A row is projected to a gate z, to x, B and C, which go through a
// causal convolution, and to a time step t of each head. A head's state S, [head_dim, state_dim], becomes
// e^(t rate) S + t x B^T; the output is S C + skip x, times silu(z), and RMS-normed in n_groups groups. The cache keeps
// the inputs of the convolution and the states. There may be factors on the projected numbers: on z and t they are
// parameters of kernels; on x, B and C the reader of a file multiplies them into the weights of the convolution.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "core/blocks/recurrent_state.h"

namespace akunu {

struct Scan {
  uint32_t n_heads = 0;
  uint32_t head_dim = 0;
  uint32_t state_dim = 0;
  uint32_t n_groups = 0;  // of heads that share B and C
  uint32_t width = 0;     // rows that a row sees in the convolution, its own included
  float time_min = 0;     // steps of time are clamped
  float time_max = std::numeric_limits<float>::infinity();
  bool is_normed = true;
  float gate_factor = 1;                           // on z
  float time_factor = 1;                           // on t, before its bias
  std::array<float, 3> input_factors = {1, 1, 1};  // on x, B and C
  float factor = 1;  // of the result, before it is added to the residual

  uint32_t inner_dim() const { return n_heads * head_dim; }
  uint32_t convolved_dim() const { return inner_dim() + 2 * n_groups * state_dim; }
  uint32_t projected_dim() const { return inner_dim() + convolved_dim() + n_heads; }
  RecurrentState state() const {
    return {.n_heads = n_heads,
            .head_size = head_dim * state_dim,
            .convolved = convolved_dim(),
            .width = width};
  }
};

}  // namespace akunu
