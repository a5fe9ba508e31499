// The families of kernels, and the search through them.
#include "cpu/kernels/table.h"

#include "cpu/isa/isa.h"

namespace akunu::cpu {

template <>
bool find_kernel<ThisIsa>(const KernelKey& request, Kernel& kernel) {
  using F = Families<ThisIsa>;
  const KernelList families[] = {
      F::embed(),
      F::embed_mlx(),
      F::norm(),
      F::rope(),
      F::kv_write(),
      F::attention(),
      F::int16_attention(),
      F::gated_activation(),
      F::elementwise(),
      F::exchange(),
      F::encoder(),
      F::adapter(),
      F::span_attention(),
      F::speech(),
      F::latent(),
      F::experts(),
      F::hadamard(),
      F::convolution(),
      F::streams(),
      F::scan(),
      F::delta_rule(),
      F::sample(),
      F::logprobs(),
      F::advance(),
  };
  return F::find_matmul(request, kernel) || find_in(families, request, kernel);
}

}  // namespace akunu::cpu
