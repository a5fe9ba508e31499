// Attention of grouped heads to the rows of a text.
#pragma once

#include <cstdint>
#include <optional>

#include "core/blocks/cached_row.h"
#include "core/blocks/rope.h"

namespace akunu {

// RMS norms of Q and of K. A layer that has their weights has them in any case.
enum class HeadNorms : uint8_t {
  where_stored,
  each,  // of each head
  all,   // one of all heads
};

struct Attention {
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  float scale = 0;     // of scores
  float soft_cap = 0;  // of scores; 0: none
  // Positions that a row sees, its own included; of an encoder: on each side of it. 0: all.
  uint32_t window = 0;
  float alibi_bias = 0;  // scores fall with the distance, ALiBi's largest bias; 0: none
  Rope rope = {};
  HeadNorms head_norms = HeadNorms::where_stored;
  bool norms_behind_rope = false;  // Q and K are normed after they rotate, else before
  bool value_norms = false;        // each head of V is normed, without a weight
  bool values_are_keys = false;    // V is what the weights of K make, before K's norm
  // The result is multiplied by sigmoids; the query projection makes their inputs, too.
  bool output_gate = false;
  // The layer before it whose keys and values it reads; nothing: it has its own.
  std::optional<uint32_t> kv_from = {};
  // A branch of few numbers (LAuReL, Menghani et al., 2024), of the same normed input x: x + norm(right(left(x))). The
  // residual with both is multiplied by the root of a half.
  bool has_branch = false;
  float factor = 1;  // of the result, before it is added to the residual

  uint32_t query_dim() const { return n_heads * head_dim; }
  uint32_t kv_dim() const { return n_kv_heads * head_dim; }
  CachedRow cached() const { return {.n_heads = n_kv_heads, .dim = head_dim, .has_values = true}; }
};

}  // namespace akunu
