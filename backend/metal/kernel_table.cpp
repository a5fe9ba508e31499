#include "metal/kernel_table.h"

namespace akunu::metal {

std::optional<Kernel> find_kernel(const KernelRequest& request) {
  // Every activation of this device is float32.
  if (request.activation != ActivationKind::f32) return std::nullopt;
  if (!unsupported_shape(request).empty()) return std::nullopt;
  std::optional<Kernel> kernel = find_matmul_kernel(request);
  if (!kernel) kernel = find_attention_kernel(request);
  if (!kernel) kernel = find_row_kernel(request);
  if (kernel) kernel->operation = request.operation;
  return kernel;
}

// Heads of attention are all that has a limit.
std::string unsupported_shape(const KernelRequest& request) {
  return unsupported_attention(request);
}

}  // namespace akunu::metal
