// Multi-head latent attention, its matrices absorbed: W_k, which would make keys of the cached row, is
// multiplied into the query instead, and W_v, which would make values, into what attention finds.
#pragma once

#include <string>

#include "core/emitter.h"

namespace akunu {

struct LatentLayer {
  const LatentAttention& is;
  std::string name, label;  // how tensors ("layers.3.attention.") and commands ("layer 3 ") begin
  ValueId query;            // [query_dim]
  ValueId row;              // [row_dim], as it was projected
  ValueId angles;
  ValueId cache;
  uint32_t page_table_stride, page_table_base;
};

// Returns what attention makes of a row, [attended_dim], in the kind that the projection of its
// output wants.
ValueId emit_latent_attention(Emitter& emitter, const LatentLayer& layer);

}  // namespace akunu
