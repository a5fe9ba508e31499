// What the cache keeps of each position, for layers that read rows of earlier positions.
#pragma once

#include <cstdint>

namespace akunu {

struct CachedRow {
  uint32_t n_heads = 0;
  uint32_t dim = 0;         // numbers of a head
  bool has_values = false;  // as many numbers again; else values are part of the keys

  bool operator==(const CachedRow&) const = default;
};

}  // namespace akunu
