#include "metal/kernel_table.h"

namespace akunu::metal {

// Of MLX's formats, groups of 64 at 4 and 8 bits with scales in halves: matvec_mlx.metal.
bool has_kernels(Format format) {
  if (format == Format::mlx_mxfp4) return false;
  if (!is_mlx_affine(format)) return true;
  for (const uint32_t bits : {4u, 8u})
    for (const MlxScale scale : {MlxScale::f16, MlxScale::bf16})
      if (format == mlx_format({bits, 64, scale})) return true;
  return false;
}

std::optional<Kernel> find_kernel(const KernelRequest& request, GemmGrid grid) {
  // Every activation of this device is float32.
  if (request.activation != ActivationKind::f32) return std::nullopt;
  if (!unsupported_shape(request).empty()) return std::nullopt;
  for (const std::optional<Format>& weight : request.weights)
    if (weight && !has_kernels(*weight)) return std::nullopt;
  std::optional<Kernel> kernel = find_matmul_kernel(request, grid);
  if (!kernel) kernel = find_attention_kernel(request);
  if (!kernel) kernel = find_row_kernel(request);
  if (kernel) kernel->operation = request.operation;
  return kernel;
}

// Heads of attention are all that has a limit.
std::string unsupported_shape(const KernelRequest& request) {
  constexpr uint32_t kMostHead = 256;  // encoder.metal, speech.metal
  const uint32_t head_dim = request.operation == Operation::span_attention
                                ? request.params.get<SpanAttentionParams>().head_dim
                            : request.operation == Operation::cross_attention
                                ? request.params.get<CrossAttentionParams>().head_dim
                                : 0;
  constexpr uint32_t kMostValue = 512;  // latent.metal
  if (request.operation == Operation::latent_attention)
    if (const uint32_t n = request.params.get<LatentAttentionParams>().value_dim; n > kMostValue)
      return "latents of " + std::to_string(n) + " numbers; at most " + std::to_string(kMostValue);
  if (head_dim > kMostHead)
    return "heads of " + std::to_string(head_dim) + " numbers; at most " +
           std::to_string(kMostHead);
  return unsupported_attention(request);
}

}  // namespace akunu::metal
