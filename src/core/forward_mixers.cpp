// What layers have in place of attention: a short convolution, the gated delta rule, a scan.
#include "core/delta_rule_layer.h"
#include "core/error.h"
#include "core/forward_builder.h"
#include "core/kernel_params.h"
#include "core/scan_layer.h"

namespace akunu {

// Its norm has the name of attention's, whose place it takes.
ValueId ForwardBuilder::convolution(const Layer& layer, const ShortConvolution& is) {
  const ValueId input = rows("convolution input", uint64_t{3} * is.dim);
  const Part part{"in", 3 * is.dim, input};
  project_normed(layer, "convolution norm", "attention_norm", "convolution.", {&part, 1});
  const std::string output = "convolution.output";
  const ValueId convolved =
      activation("convolved", kind_for(layer.name + output + ".weight", arch_.dim, is.dim), is.dim);
  const LayerCache& pools = memory_.layers[layer.index];
  emit(Operation::short_convolution, layer.label + "convolution",
       {input, vector(layer.name + "convolution.kernel.weight", uint64_t{is.dim} * is.width),
        bound(layer.label + "inputs", pools.keys, pools.format), convolved},
       ShortConvolutionParams{is.dim, is.width, memory_.page_table_stride,
                              memory_.page_table_bases[pools.group]});
  return project(layer, "convolution output", convolved, output, is.dim);
}

RecurrentCaches ForwardBuilder::recurrent_caches(const Layer& layer, const RecurrentState& state) {
  const LayerCache& pools = memory_.states[layer.index];
  return {.inputs = bound(layer.label + "inputs", pools.values, pools.format),
          .states = bound(layer.label + "states", pools.keys, pools.format),
          .n_kept_inputs = state.kept_inputs(),
          .page_table_stride = memory_.page_table_stride,
          .page_table_base = memory_.page_table_bases[pools.group]};
}

// The norm before it has the name of attention's.
ValueId ForwardBuilder::scan(const Layer& layer, const Scan& is) {
  const ValueId projected = rows("scan projected", is.projected_dim());
  const Part part{"in", is.projected_dim(), projected};
  project_normed(layer, "scan norm", "attention_norm", "scan.", {&part, 1});
  const ValueId scanned = emit_scan(*this, {.is = is,
                                            .name = layer.name + "scan.",
                                            .label = layer.label,
                                            .projected = projected,
                                            .norm_epsilon = arch_.norm_epsilon,
                                            .caches = recurrent_caches(layer, is.state())});
  return project(layer, "scan output", scanned, "scan.output", is.inner_dim());
}

// Likewise. The gate, a projection of the same input, comes last.
ValueId ForwardBuilder::delta_rule(const Layer& layer, const DeltaRule& is) {
  ValueId input = kNoValue;
  const ValueId gate = rows("delta gate", is.values());
  const ValueId a = rows("delta a", is.n_decays()), b = rows("delta b", is.n_value_heads);
  if (is.per_channel) {
    input = project_channels(layer, is, gate, a, b);
  } else {
    input = rows("delta input", is.convolved());
    const Part parts[] = {{"qkv", is.convolved(), input},
                          {"gate", is.values(), gate},
                          {"a", is.n_value_heads, a},
                          {"b", is.n_value_heads, b}};
    project_normed(layer, "delta norm", "attention_norm", "delta.", parts);
  }
  const std::string output = is.per_channel ? "attention.output" : "delta.output";
  const ValueId recalled = emit_delta_rule(*this, {.is = is,
                                                   .name = layer.name + "delta.",
                                                   .label = layer.label,
                                                   .output = layer.name + output,
                                                   .input = input,
                                                   .gate = gate,
                                                   .a = a,
                                                   .b = b,
                                                   .norm_epsilon = arch_.norm_epsilon,
                                                   .caches = recurrent_caches(layer, is.state())});
  return project(layer, "delta output", recalled, output, is.values());
}

// Queries, keys and values side by side. The decay and the gate go through as many numbers as their tensors have.
ValueId ForwardBuilder::project_channels(const Layer& layer, const DeltaRule& is, ValueId gate,
                                         ValueId a, ValueId b) {
  const auto rank_of = [&](const char* name) {
    const Weight* const low = find(layer.name + name + ".weight");
    if (low == nullptr)
      throw ModelFormatError("tensor " + layer.name + name + ".weight is missing");
    return static_cast<uint32_t>(low->rows);
  };
  const uint32_t a_rank = rank_of("delta.a_low"), gate_rank = rank_of("delta.gate_low");
  const ValueId query = rows("delta query", is.keys()), key = rows("delta key", is.keys());
  const ValueId value = rows("delta value", is.values());
  const ValueId low_a = rows("delta a low", a_rank), low_gate = rows("delta gate low", gate_rank);
  const Part parts[] = {{"attention.q", is.keys(), query},       {"attention.k", is.keys(), key},
                        {"attention.v", is.values(), value},     {"delta.a_low", a_rank, low_a},
                        {"delta.gate_low", gate_rank, low_gate}, {"delta.b", is.n_value_heads, b}};
  project_normed(layer, "delta norm", "attention_norm", "", parts);
  widen(layer.label + "delta.a", low_a, a_rank, layer.name + "delta.a", is.n_decays(), a);
  widen(layer.label + "delta.gate", low_gate, gate_rank, layer.name + "delta.gate", is.values(),
        gate);
  const ValueId input = rows("delta input", is.convolved());
  emit(Operation::join_rows, layer.label + "delta input", {query, key, value, input},
       JoinRowsParams{is.keys(), is.keys(), is.values(), 0});
  return input;
}

}  // namespace akunu
