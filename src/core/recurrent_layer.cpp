#include "core/recurrent_layer.h"

#include "core/kernel_params.h"

namespace akunu {

ValueId emit_causal_convolution(Emitter& emitter, const std::string& name, const std::string& label,
                                const Convolved& convolved, const RecurrentCaches& caches) {
  const auto& [input, n, width, stride, first] = convolved;
  const ValueId out = emitter.rows("recurrence input", n);
  const std::string bias = name + "kernel.bias";
  emitter.emit(
      Operation::causal_convolution, label + "convolution",
      {input, emitter.vector(name + "kernel.weight", uint64_t{n} * width),
       emitter.find(bias) != nullptr ? emitter.vector(bias, n) : kNoValue, caches.inputs, out},
      CausalConvolutionParams{n, width, stride, first, caches.n_kept_inputs,
                              caches.page_table_stride, caches.page_table_base, 0});
  return out;
}

}  // namespace akunu
