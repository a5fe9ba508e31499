#include "metal/kernel_table.h"

namespace akunu::metal {

// Groups of MLX's formats are as large as a function constant says: "mlx4_128_bf16" is a "mlx4_bf16".
std::string function_of(std::string_view family, Format format) {
  std::string name = std::string(family) + "_";
  if (!is_mlx_affine(format)) return name + std::string(format_info(format).name);
  const MlxFormat mlx = mlx_format_of(format);
  name += "mlx" + std::to_string(mlx.bits);
  return name + (mlx.scale == MlxScale::f16 ? "" : mlx.scale == MlxScale::bf16 ? "_bf16" : "_f32");
}

std::vector<FunctionConstant> constants_of(Format format) {
  if (!is_mlx_affine(format)) return {};
  return {{kConstantMlxGroup, mlx_format_of(format).group, false}};
}

std::optional<Kernel> find_kernel(const KernelRequest& request, GemmTiles tiles) {
  // Every activation of this device is float32.
  if (request.activation != ActivationKind::f32) return std::nullopt;
  if (!unsupported_shape(request).empty()) return std::nullopt;
  std::optional<Kernel> kernel = find_matmul_kernel(request, tiles);
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
