// Multi-head latent attention (DeepSeek-V2, 2024): the keys and values of all heads are made of one row of `rank` numbers
// of a position, and of `rope.dim` rotated ones, which all heads share. The cache keeps that row. A head is
// [head_dim - rope.dim | rope.dim], its rotated numbers last.
#pragma once

#include <cstdint>

#include "core/blocks/cached_row.h"
#include "core/blocks/rope.h"

namespace akunu {

struct LatentAttention {
  uint32_t n_heads = 0;
  uint32_t head_dim = 0;
  float scale = 0;  // of scores
  Rope rope = {};
  uint32_t rank = 0;
  uint32_t query_rank = 0;  // queries are made of this many numbers, normed; 0: of the input
  uint32_t value_dim = 0;   // of a head
  float norm_epsilon = 0;

  uint32_t query_dim() const { return n_heads * head_dim; }
  uint32_t row_dim() const { return rank + rope.dim; }
  uint32_t attended_dim() const { return n_heads * value_dim; }
  CachedRow cached() const { return {.n_heads = 1, .dim = row_dim(), .has_values = false}; }
};

}  // namespace akunu
