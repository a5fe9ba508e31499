// What mixes the rows of a text: attention, and what layers have in its place.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/delta_rule_layer.h"
#include "core/error.h"
#include "core/forward_builder.h"
#include "core/kernel_params.h"
#include "core/latent_layer.h"
#include "core/scan_layer.h"

namespace akunu {
namespace {

// The numbers of a value that are rotated together before they go into a cache of four bits, in whose blocks a
// large number would cost the others theirs: as many of a head as a kernel takes. 0: they stay as they are.
uint32_t hadamard_width(Format cache, uint32_t head_dim) {
  if (cache != Format::q4_0) return 0;
  return std::min(head_dim & (~head_dim + 1), kMaxHadamard);
}

}  // namespace

ValueId ForwardBuilder::attention(const Layer& layer) {
  const LayerDescriptor& is = layer.is;
  if (is.latent) return latent_attention(layer, *is.latent);
  const uint32_t q_dim = is.n_heads * is.head_dim;
  const uint32_t kv_dim = is.n_kv_heads * is.head_dim;
  const bool has_own = !is.kv_from;  // keys and values
  const std::string owner = layer.is_of_encoder ? "encoder " : "";
  ValueId query = rows(owner + "query", q_dim);
  ValueId key = rows(owner + "key", kv_dim);
  ValueId value = rows(owner + "value", kv_dim);

  // With a gate, each head's numbers of it lie behind those of its query.
  const ValueId gated_query = is.output_gate ? rows("gated query", 2 * q_dim) : query;
  std::vector<Part> parts{{"q", is.output_gate ? 2 * q_dim : q_dim, gated_query}};
  if (has_own) parts.push_back({"k", kv_dim, key});
  if (has_own && !is.values_are_keys) parts.push_back({"v", kv_dim, value});
  project_normed(layer, "attention norm", "attention_norm", "attention.", parts);
  const ValueId gate = is.output_gate ? rows("attention gate", q_dim) : kNoValue;
  if (is.output_gate)
    emit(Operation::split_heads, layer.label + "q gate", {gated_query, query, gate},
         SplitHeadsParams{is.n_heads, is.head_dim, {}});
  if (has_own && is.values_are_keys)
    emit(Operation::activate, layer.label + "v", {key, value},
         ActivateParams{kv_dim, kActivationNone, 0, 0});
  if (has_own && is.value_norms)
    emit(Operation::head_norm, layer.label + "v norm", {value, bound("ones", memory_.ones)},
         HeadNormParams{is.n_kv_heads, is.head_dim, arch_.norm_epsilon, 0});
  const auto norm_heads = [&] {
    query = head_norm(layer, "q", query, is.n_heads);
    if (has_own) key = head_norm(layer, "k", key, is.n_kv_heads);
  };
  if (!is.norms_behind_rope) norm_heads();
  rope(layer, "q", query, is.n_heads, query_angles_);
  if (has_own) rope(layer, "k", key, is.n_kv_heads, angles_);
  if (is.norms_behind_rope) norm_heads();

  const ValueId attended = activation(
      "attended", kind_for(layer.name + "attention.output.weight", arch_.dim, q_dim), q_dim);
  if (layer.is_of_encoder) begin_encoder_part();
  if (arch_.embeds || layer.is_of_encoder) {
    emit(Operation::span_attention, layer.label + "attention", {query, key, value, attended},
         span_attention(is, arch_.causal && !layer.is_of_encoder));
    return project(layer, "attention output", attended, "attention.output", q_dim);
  }

  const LayerCache& pools = memory_.layers[layer.index];
  const uint32_t width = hadamard_width(pools.format, is.head_dim);
  if (width > 0 && has_own) value = hadamard(layer, "v", value, kv_dim, width);
  const bool is_plain = width == 0 && !is.output_gate;
  const ValueId out = is_plain ? attended : rows("attended rows", q_dim);
  const std::string cache = "layer " + std::to_string(is.kv_from.value_or(layer.index)) + " ";
  const ValueId keys = bound(cache + "keys", pools.keys, format_of_keys(pools.format));
  const ValueId values = bound(cache + "values", pools.values, pools.format);
  const uint32_t stride = memory_.page_table_stride;
  const uint32_t base = memory_.page_table_bases[pools.group];
  if (has_own)
    emit(Operation::kv_write, layer.label + "kv write", {key, value, keys, values},
         KvWriteParams{is.n_kv_heads, is.head_dim, stride, base});

  const AttentionParams params{is.n_heads,         is.n_kv_heads,         is.head_dim, is.window,
                               is.attention_scale, is.attention_soft_cap, stride,      base};
  if (const std::string sinks = layer.name + "attention.sinks.weight"; find(sinks) != nullptr)
    emit(Operation::sink_attention, layer.label + "attention",
         {query, keys, values, out, vector(sinks, is.n_heads)}, params);
  else
    emit(Operation::attention, layer.label + "attention", {query, keys, values, out}, params);
  ValueId ungated = out;
  if (width > 0) {  // the matrix is its own inverse
    ungated = is.output_gate ? rows("attended back", q_dim) : attended;
    emit(Operation::hadamard, layer.label + "attended rotation", {out, ungated},
         HadamardParams{q_dim, width, {}});
  }
  if (is.output_gate)
    emit(Operation::gated_activation, layer.label + "attention gate", {gate, ungated, attended},
         GatedActivationParams{q_dim, kActivationSigmoid, 0, 0});
  return project(layer, "attention output", attended, "attention.output", q_dim);
}

ValueId ForwardBuilder::latent_attention(const Layer& layer, const Latent& latent) {
  const LayerDescriptor& is = layer.is;
  const uint32_t q_dim = is.n_heads * is.head_dim, row_dim = is.cached_dim();
  const ValueId query = rows("query", q_dim), row = rows("latent", row_dim);
  const bool has_low = latent.query_rank > 0;  // queries of a few numbers
  const ValueId low = has_low ? rows("query latent", latent.query_rank) : query;
  const Part parts[] = {has_low ? Part{"q_a", latent.query_rank, low} : Part{"q", q_dim, query},
                        {"kv_a", row_dim, row}};
  project_normed(layer, "attention norm", "attention_norm", "attention.", parts);
  if (has_low) {
    const std::string name = layer.name + "attention.q_b";
    const ValueId normed =
        activation("query latent normed", kind_for(name + ".weight", q_dim, latent.query_rank),
                   latent.query_rank);
    emit(Operation::rms_norm, layer.label + "q_a norm",
         {low, vector(layer.name + "attention.q_a_norm.weight", latent.query_rank), normed},
         NormParams{latent.query_rank, latent.norm_epsilon, {}});
    matmul(layer.label + "q_b", normed, name + ".weight", q_dim, latent.query_rank, query);
    adapt_if_wanted(layer.label + "q_b", normed, name, q_dim, latent.query_rank, query);
  }

  const LayerCache& pools = memory_.layers[layer.index];
  const ValueId attended = emit_latent_attention(
      *this, {.is = is,
              .name = layer.name + "attention.",
              .label = layer.label,
              .query = query,
              .row = row,
              .angles = angles_[layer.index],
              .cache = bound(layer.label + "latents", pools.keys, pools.format),
              .page_table_stride = memory_.page_table_stride,
              .page_table_base = memory_.page_table_bases[pools.group]});
  return project(layer, "attention output", attended, "attention.output", is.attended_dim());
}

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

RecurrentCaches ForwardBuilder::recurrent_caches(const Layer& layer) {
  const LayerCache& pools = memory_.states[layer.index];
  return {.inputs = bound(layer.label + "inputs", pools.values, pools.format),
          .states = bound(layer.label + "states", pools.keys, pools.format),
          .n_kept_inputs = layer.is.state->kept_inputs(),
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
                                            .caches = recurrent_caches(layer)});
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
                                                   .caches = recurrent_caches(layer)});
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

SpanAttentionParams ForwardBuilder::span_attention(const LayerDescriptor& is, bool causal) {
  SpanAttentionParams params{is.n_heads,         is.n_kv_heads, is.head_dim, is.window,
                             is.attention_scale, causal,        0,           0};
  // A causal window counts the row itself.
  if (causal && is.window > 0) params.window = is.window - 1;
  if (is.alibi_bias > 0) {
    const auto n = static_cast<float>(std::bit_floor(is.n_heads));
    params.alibi_first = std::exp2(-is.alibi_bias / n);
    params.alibi_second = std::exp2(-is.alibi_bias / 2 / n);
  }
  return params;
}

// The normed heads: `data` itself, or where one norm is of all of them another value.
ValueId ForwardBuilder::head_norm(const Layer& layer, const std::string& letter, ValueId data,
                                  uint32_t n_heads) {
  const LayerDescriptor& is = layer.is;
  const std::string name = layer.name + "attention." + letter + "_norm.weight";
  if (!is.head_norms && find(name) == nullptr) return data;
  const std::string label = layer.label + letter + " norm";
  if (is.norms_all_heads) {
    const uint32_t n = n_heads * is.head_dim;
    const ValueId normed = rows(letter + " normed", n);
    emit(Operation::rms_norm, label, {data, vector(name, n), normed},
         NormParams{n, arch_.norm_epsilon, {}});
    return normed;
  }
  emit(Operation::head_norm, label, {data, vector(name, is.head_dim)},
       HeadNormParams{n_heads, is.head_dim, arch_.norm_epsilon, 0});
  return data;
}

ValueId ForwardBuilder::hadamard(const Layer& layer, const std::string& letter, ValueId data,
                                 uint32_t n, uint32_t width) {
  const ValueId rotated = rows(letter + " rotated", n);
  emit(Operation::hadamard, layer.label + letter + " rotation", {data, rotated},
       HadamardParams{n, width, {}});
  return rotated;
}

void ForwardBuilder::rope(const Layer& layer, const std::string& letter, ValueId data,
                          uint32_t n_heads, const std::vector<ValueId>& angles) {
  if (layer.is.rope_style == RopeStyle::none) return;
  const uint32_t style = layer.is.rope_style == RopeStyle::halves ? kRopeHalves : kRopeInterleaved;
  emit(Operation::rope, layer.label + letter + " rope", {data, angles[layer.index]},
       RopeParams{n_heads, layer.is.head_dim, layer.is.rope_dim / 2, style});
}

}  // namespace akunu
