// A gated convolution along the text (LFM2, 2025). A row is projected to b, c and x, each as wide as the residual; every
// number of c is multiplied by the weighted sum of b * x at that place, in this row and the ones before it. The cache
// keeps b * x.
#pragma once

#include <cstdint>

#include "core/blocks/cached_row.h"

namespace akunu {

struct ShortConvolution {
  uint32_t dim = 0;
  uint32_t width = 0;  // rows that a row sees, its own included

  CachedRow cached() const { return {.n_heads = 1, .dim = dim, .has_values = false}; }
};

}  // namespace akunu
