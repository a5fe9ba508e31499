// The families of a level with a matrix unit, and the search through them.
#include "cpu/kernels/tiles/table.h"

#include "cpu/isa/isa.h"

namespace akunu::cpu {

template <>
bool find_kernel<ThisIsa>(const KernelKey& request, Kernel& kernel) {
  using F = TileFamilies<ThisIsa>;
  if (request.operation == Operation::matmul_group && F::matmul_group(request, kernel)) return true;
  const KernelList families[] = {F::matmul(), F::gated_matmul(), F::attention()};
  return find_in(families, request, kernel) || find_kernel<Avx512>(request, kernel);
}

}  // namespace akunu::cpu
