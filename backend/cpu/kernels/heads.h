// What becomes of one head of a query, key or value before attention reads it; shared by the kernels that write
// caches, so that fusing changes no bit.
#pragma once

#include "cpu/kernels/formats_cache.h"
#include "cpu/kernels/norm.h"
#include "cpu/kernels/rope.h"

namespace akunu::cpu {

// out = rope(rms norm of `head`, where there is a weight for one); `out` may be `head`. `params` of any operation
// that rotates heads.
template <class Isa, class Params, uint32_t kAngleStep>
static inline void norm_and_rotate(const float* head, const float* norm, const Params& params,
                                   const Angles<kAngleStep>& angles, float* out) {
  if (norm != nullptr)
    rms_norm_floats<Isa>(head, norm, params.head_dim, params.epsilon, out);
  else if (out != head)
    __builtin_memcpy(out, head, sizeof(float) * uint64_t{params.head_dim});
  rotate_head<Isa>(out, angles, params.n_pairs, params.style);
}

// Puts a head at element `offset` of a cache in `Format`.
template <class Isa, class Format>
static inline void store_head(const float* head, uint32_t head_dim, std::byte* cache,
                              uint64_t offset) {
  if constexpr (IsInBlocks<Format>) {
    Format::store_head(head, head_dim, cache + Format::byte_at(offset));
  } else {
    uint32_t i = 0;
    for (; i + Isa::kLanes <= head_dim; i += Isa::kLanes)
      Format::store(cache, offset + i, Isa::load(head + i), Isa::kLanes);
    if (const uint32_t n = head_dim - i; n > 0)
      Format::store(cache, offset + i, Isa::load(head + i, n), n);
  }
}

}  // namespace akunu::cpu
