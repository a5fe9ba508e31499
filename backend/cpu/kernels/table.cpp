// The families of kernels, and the search through them.
#include "cpu/kernels/table.h"

#include "cpu/isa/isa.h"

namespace akunu::cpu {

template <>
bool find_kernel<ThisIsa>(const KernelKey& request, Kernel& kernel) {
  using F = Families<ThisIsa>;
  if (request.operation == Operation::matmul_group) return F::matmul_group(request, kernel);
  if (request.operation == Operation::gated_matmul) return F::gated_matmul(request, kernel);
  const KernelList families[] = {
      F::embed(),    F::norm(),      F::matmul(),           F::rope(),
      F::kv_write(), F::attention(), F::gated_activation(), F::elementwise(),
      F::sample(),   F::advance(),
  };
  return find_in(families, request, kernel);
}

}  // namespace akunu::cpu
