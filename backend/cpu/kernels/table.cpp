// The families of kernels, and the search through them.
#include "cpu/kernels/table.h"

#include "cpu/isa/isa.h"

namespace akunu::cpu {
namespace {

bool serves(const KernelKey& kernel, const KernelKey& request) {
  if (kernel.operation != request.operation) return false;
  for (uint32_t i = 0; i < 3; ++i)
    if (kernel.weights[i] != request.weights[i]) return false;
  return (kernel.activation == kAny || kernel.activation == request.activation) &&
         (kernel.cache == kAny || kernel.cache == request.cache);
}

}  // namespace

template <>
bool find_kernel<ThisIsa>(const KernelKey& request, Kernel& kernel) {
  using F = Families<ThisIsa>;
  if (request.operation == Operation::matmul_group) return F::matmul_group(request, kernel);
  const KernelList families[] = {
      F::embed(),    F::norm(),      F::matmul(),           F::rope(),
      F::kv_write(), F::attention(), F::gated_activation(), F::elementwise(),
      F::sample(),   F::advance(),
  };
  for (const KernelList& family : families)
    for (uint32_t i = 0; i < family.count; ++i)
      if (serves(family.entries[i].key, request)) {
        kernel = family.entries[i].kernel;
        return true;
      }
  return false;
}

}  // namespace akunu::cpu
