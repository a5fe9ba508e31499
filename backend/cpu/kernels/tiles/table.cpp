// The families of a level with a matrix unit, and the search through them.
#include "cpu/kernels/tiles/table.h"

#include "cpu/isa/isa.h"

namespace akunu::cpu {

template <>
bool find_kernel<ThisIsa>(const KernelKey& request, Kernel& kernel) {
  using F = TileFamilies<ThisIsa>;
  const KernelList families[] = {F::gated_matmul(), F::attention()};
  return F::find_matmul(request, kernel) || find_in(families, request, kernel) ||
         find_kernel<Avx512>(request, kernel);
}

}  // namespace akunu::cpu
