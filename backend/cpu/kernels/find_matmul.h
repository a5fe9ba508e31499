// Finds the matmuls that work with any matmul kernel.
#pragma once

#include "cpu/kernels/expert_matmul.h"
#include "cpu/kernels/formats.h"
#include "cpu/kernels/formats_cache.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/matmul_heads.h"

namespace akunu::cpu {

// False for other operations, and where `known` has no kernel for a weight.
template <class Isa, uint32_t N>
static inline bool find_matmul_in(const MatmulKernels (&known)[N], const KernelKey& request,
                                  Kernel& kernel) {
  switch (request.operation) {
    case Operation::matmul:
    case Operation::matmul_add:
      return Matmul<Isa>::find(known, request, kernel);
    case Operation::matmul_group:
      return MatmulGroup<Isa>::find(known, request, kernel);
    case Operation::expert_matmul:
      return ExpertMatmul<Isa>::find(known, request, kernel);
    case Operation::matmul_rope_kv_write:
      if (request.cache == F32<Isa>::kFormat)
        return MatmulHeads<Isa, F32<Isa>>::find(known, request, kernel);
      if (request.cache == CacheQ8_0<Isa>::kFormat)
        return MatmulHeads<Isa, CacheQ8_0<Isa>>::find(known, request, kernel);
      return request.cache == F16<Isa>::kFormat &&
             MatmulHeads<Isa, F16<Isa>>::find(known, request, kernel);
    default:
      return false;
  }
}

}  // namespace akunu::cpu
