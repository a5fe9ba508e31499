// The gated delta rule (Yang et al., 2024), a linear attention. Each value head has a state S, [value_dim, key_dim].
// A row with key k, query q and value v decays it by g, and moves what it recalls for k towards v by the share beta:
// S = g S; S += beta (v - S k) k^T; the output is S q / sqrt(key_dim). k and q are normalised to length 1.
// Per channel (Kimi Delta Attention, Moonshot AI, 2025) g is a factor for each number of a key; queries, keys and values
// then have a projection each, named as attention's, and g and the gate of what is recalled go through a few numbers.
#pragma once

#include <cstdint>

#include "core/blocks/recurrent_state.h"

namespace akunu {

struct DeltaRule {
  uint32_t n_key_heads = 0;    // of queries, too
  uint32_t n_value_heads = 0;  // each has a state
  uint32_t key_dim = 0;
  uint32_t value_dim = 0;
  uint32_t width = 0;     // of the short convolution in front of it
  bool is_tiled = false;  // value head h has key head h % n_key_heads; else neighbours share one
  bool per_channel = false;

  uint32_t keys() const { return n_key_heads * key_dim; }
  uint32_t values() const { return n_value_heads * value_dim; }
  uint32_t convolved() const { return 2 * keys() + values(); }
  uint32_t n_decays() const { return n_value_heads * (per_channel ? key_dim : 1); }  // of a row
  RecurrentState state() const {
    return {.n_heads = n_value_heads,
            .head_size = key_dim * value_dim,
            .convolved = convolved(),
            .width = width};
  }
};

}  // namespace akunu
