#include "core/scan_layer.h"

#include "core/kernel_params.h"

namespace akunu {

ValueId emit_scan(Emitter& emitter, const ScanLayer& layer) {
  const Scan& is = layer.is;
  const uint32_t inner = is.inner_dim(), n = is.convolved_dim(), stride = is.projected_dim();
  const ValueId convolved =
      emit_causal_convolution(emitter, layer.name, layer.label + "scan ",
                              {layer.projected, n, is.width, stride, inner}, layer.caches);

  const ValueId scanned = emitter.rows("scanned", inner);
  emitter.emit(
      Operation::selective_scan, layer.label + "scan",
      {convolved, layer.projected, emitter.vector(layer.name + "rate.weight", is.n_heads),
       emitter.vector(layer.name + "time.bias", is.n_heads),
       emitter.vector(layer.name + "skip.weight", is.n_heads), layer.caches.states, scanned},
      SelectiveScanParams{is.n_heads, is.head_dim, is.state_dim, is.n_groups, stride, inner + n,
                          is.time_min, is.time_max, layer.caches.page_table_stride,
                          layer.caches.page_table_base, is.time_factor, 0});

  const ActivationKind kind =
      emitter.kind_for(layer.name + "output.weight", emitter.arch().dim, inner);
  const ValueId normed = emitter.activation("scan normed", kind, inner);
  emitter.emit(
      Operation::gated_norm, layer.label + "scan norm",
      {scanned, layer.projected,
       is.is_normed ? emitter.vector(layer.name + "norm.weight", inner) : kNoValue, normed},
      GatedNormParams{
          inner, inner / is.n_groups, stride, 0, layer.norm_epsilon, is.gate_factor, {}});
  return normed;
}

}  // namespace akunu
