#include "cpu/kernel_table.h"

#include "cpu/kernels/table.h"

namespace akunu::cpu {

const Kernel* find_kernel(IsaLevel level, const KernelRequest& request) {
  KernelKey key{request.operation};
  key.activation = static_cast<int32_t>(request.activation);
  for (size_t i = 0; i < request.weights.size(); ++i)
    if (request.weights[i]) key.weights[i] = static_cast<int32_t>(*request.weights[i]);
  key.cache = static_cast<int32_t>(request.cache);
  switch (level) {
    case IsaLevel::generic:
      return find_kernel<Generic>(key);
#if defined(__x86_64__)
    case IsaLevel::avx2:
      return find_kernel<Avx2>(key);
#else
    case IsaLevel::avx2:
      break;
#endif
  }
  return nullptr;
}

}  // namespace akunu::cpu
