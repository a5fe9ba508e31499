#include "core/delta_rule_layer.h"

#include "core/kernel_params.h"

namespace akunu {

ValueId emit_delta_rule(Emitter& emitter, const DeltaRuleLayer& layer) {
  const DeltaRule& is = layer.is;
  const uint32_t n = is.convolved(), values = is.values();
  const ValueId convolved = emit_causal_convolution(emitter, layer.name, layer.label + "delta ",
                                                    {layer.input, n, is.width, n, 0}, layer.caches);

  const ValueId recalled = emitter.rows("recalled", values);
  emitter.emit(
      Operation::gated_delta_rule, layer.label + "delta rule",
      {convolved, layer.a, layer.b, emitter.vector(layer.name + "rate.weight", is.n_value_heads),
       emitter.vector(layer.name + "time.bias", is.n_decays()), layer.caches.states, recalled},
      GatedDeltaRuleParams{is.n_key_heads, is.n_value_heads, is.key_dim, is.value_dim, is.is_tiled,
                           layer.caches.page_table_stride, layer.caches.page_table_base,
                           is.per_channel ? 1u : 0u});

  emitter.emit(Operation::head_norm, layer.label + "recalled norm",
               {recalled, emitter.vector(layer.name + "norm.weight", is.value_dim)},
               HeadNormParams{is.n_value_heads, is.value_dim, layer.norm_epsilon, 0});
  const ActivationKind kind =
      emitter.kind_for(layer.output + ".weight", emitter.arch().dim, values);
  const ValueId gated = emitter.activation("recalled gated", kind, values);
  emitter.emit(
      Operation::gated_activation, layer.label + "delta gate", {layer.gate, recalled, gated},
      GatedActivationParams{values, is.per_channel ? kActivationSigmoid : kActivationSilu, 0, 0});
  return gated;
}

}  // namespace akunu
