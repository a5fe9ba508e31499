// Attention, to the rows of a text and to latents.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/forward_builder.h"
#include "core/kernel_params.h"
#include "core/latent_layer.h"

namespace akunu {
namespace {

// The numbers of a value that are rotated together before they go into a cache of four bits, in whose blocks a
// large number would cost the others theirs: as many of a head as a kernel takes. 0: they stay as they are.
uint32_t hadamard_width(Format cache, uint32_t head_dim) {
  if (cache != Format::q4_0) return 0;
  return std::min(head_dim & (~head_dim + 1), kMaxHadamard);
}

SpanAttentionParams span_attention(const Attention& is, bool causal) {
  SpanAttentionParams params{is.n_heads, is.n_kv_heads, is.head_dim, is.window,
                             is.scale,   causal,        0,           0};
  // A causal window counts the row itself.
  if (causal && is.window > 0) params.window = is.window - 1;
  if (is.alibi_bias > 0) {
    const auto n = static_cast<float>(std::bit_floor(is.n_heads));
    params.alibi_first = std::exp2(-is.alibi_bias / n);
    params.alibi_second = std::exp2(-is.alibi_bias / 2 / n);
  }
  return params;
}

}  // namespace

ValueId ForwardBuilder::attention(const Layer& layer, const Attention& is) {
  Heads heads = project_heads(layer, is);
  place_heads(layer, is, heads);
  const uint32_t q_dim = is.query_dim();
  const ValueId attended = activation(
      "attended", kind_for(layer.name + "attention.output.weight", arch_.dim, q_dim), q_dim);
  if (layer.is_of_encoder) begin_encoder_part();
  if (arch_.embeds || layer.is_of_encoder)
    emit(Operation::span_attention, layer.label + "attention",
         {heads.query, heads.key, heads.value, attended},
         span_attention(is, arch_.causal && !layer.is_of_encoder));
  else
    attend_to_cache(layer, is, heads, attended);
  return project(layer, "attention output", attended, "attention.output", q_dim);
}

// A layer that reads the keys and values of another layer projects its query only.
ForwardBuilder::Heads ForwardBuilder::project_heads(const Layer& layer, const Attention& is) {
  const uint32_t q_dim = is.query_dim(), kv_dim = is.kv_dim();
  const std::string owner = layer.is_of_encoder ? "encoder " : "";
  Heads heads{.query = rows(owner + "query", q_dim)};
  // With a gate, the projection makes a head's query, then its gate.
  const ValueId gated_query = is.output_gate ? rows("gated query", 2 * q_dim) : heads.query;
  std::vector<Part> parts{{"q", is.output_gate ? 2 * q_dim : q_dim, gated_query}};
  if (!is.kv_from) {
    heads.key = rows(owner + "key", kv_dim);
    heads.value = rows(owner + "value", kv_dim);
    parts.push_back({"k", kv_dim, heads.key});
    if (!is.values_are_keys) parts.push_back({"v", kv_dim, heads.value});
  }
  project_normed(layer, "attention norm", "attention_norm", "attention.", parts);
  if (is.output_gate) {
    heads.gate = rows("attention gate", q_dim);
    emit(Operation::split_heads, layer.label + "q gate", {gated_query, heads.query, heads.gate},
         SplitHeadsParams{is.n_heads, is.head_dim, {}});
  }
  if (is.values_are_keys && heads.has_own())
    emit(Operation::activate, layer.label + "v", {heads.key, heads.value},
         ActivateParams{kv_dim, kActivationNone, 0, 0});
  return heads;
}

// Norms and rotary positions of the heads.
void ForwardBuilder::place_heads(const Layer& layer, const Attention& is, Heads& heads) {
  if (is.value_norms && heads.has_own())
    emit(Operation::head_norm, layer.label + "v norm", {heads.value, bound("ones", memory_.ones)},
         HeadNormParams{is.n_kv_heads, is.head_dim, arch_.norm_epsilon, 0});
  const auto norm_heads = [&] {
    heads.query = head_norm(layer, is, "q", heads.query, is.n_heads);
    heads.key = head_norm(layer, is, "k", heads.key, is.n_kv_heads);
  };
  if (!is.norms_behind_rope) norm_heads();
  rope(layer, is, "q", heads.query, is.n_heads, query_angles_);
  rope(layer, is, "k", heads.key, is.n_kv_heads, angles_);
  if (is.norms_behind_rope) norm_heads();
}

// Writes keys and values into the cache, and attends to all that are there.
void ForwardBuilder::attend_to_cache(const Layer& layer, const Attention& is, const Heads& heads,
                                     ValueId attended) {
  const uint32_t q_dim = is.query_dim();
  const bool is_gated = heads.gate != kNoValue;
  const LayerCache& pools = memory_.layers[layer.index];
  const uint32_t width = hadamard_width(pools.format, is.head_dim);
  ValueId value = heads.value;
  if (width > 0 && heads.has_own()) value = hadamard(layer, "v", value, is.kv_dim(), width);
  const bool is_plain = width == 0 && !is_gated;
  const ValueId out = is_plain ? attended : rows("attended rows", q_dim);
  const std::string cache = "layer " + std::to_string(is.kv_from.value_or(layer.index)) + " ";
  const ValueId keys = bound(cache + "keys", pools.keys, format_of_keys(pools.format));
  const ValueId values = bound(cache + "values", pools.values, pools.format);
  const uint32_t stride = memory_.page_table_stride;
  const uint32_t base = memory_.page_table_bases[pools.group];
  if (heads.has_own())
    emit(Operation::kv_write, layer.label + "kv write", {heads.key, value, keys, values},
         KvWriteParams{is.n_kv_heads, is.head_dim, stride, base});

  const AttentionParams params{is.n_heads, is.n_kv_heads, is.head_dim, is.window,
                               is.scale,   is.soft_cap,   stride,      base};
  if (const std::string sinks = layer.name + "attention.sinks.weight"; find(sinks) != nullptr)
    emit(Operation::sink_attention, layer.label + "attention",
         {heads.query, keys, values, out, vector(sinks, is.n_heads)}, params);
  else
    emit(Operation::attention, layer.label + "attention", {heads.query, keys, values, out}, params);
  ValueId ungated = out;
  if (width > 0) {  // the matrix is its own inverse
    ungated = is_gated ? rows("attended back", q_dim) : attended;
    emit(Operation::hadamard, layer.label + "attended rotation", {out, ungated},
         HadamardParams{q_dim, width, {}});
  }
  if (is_gated)
    emit(Operation::gated_activation, layer.label + "attention gate",
         {heads.gate, ungated, attended}, GatedActivationParams{q_dim, kActivationSigmoid, 0, 0});
}

// The normed heads: `data` itself, or where one norm is of all of them another value.
ValueId ForwardBuilder::head_norm(const Layer& layer, const Attention& is,
                                  const std::string& letter, ValueId data, uint32_t n_heads) {
  const std::string name = layer.name + "attention." + letter + "_norm.weight";
  const bool has_norm = is.head_norms != HeadNorms::where_stored || find(name) != nullptr;
  if (data == kNoValue || !has_norm) return data;
  const std::string label = layer.label + letter + " norm";
  if (is.head_norms == HeadNorms::all) {
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

void ForwardBuilder::rope(const Layer& layer, const Attention& is, const std::string& letter,
                          ValueId data, uint32_t n_heads, const std::vector<ValueId>& angles) {
  if (data == kNoValue || is.rope.style == RopeStyle::none) return;
  const uint32_t style = is.rope.style == RopeStyle::halves ? kRopeHalves : kRopeInterleaved;
  emit(Operation::rope, layer.label + letter + " rope", {data, angles[layer.index]},
       RopeParams{n_heads, is.head_dim, is.rope.dim / 2, style});
}

ValueId ForwardBuilder::latent_attention(const Layer& layer, const LatentAttention& is) {
  const uint32_t q_dim = is.query_dim(), row_dim = is.row_dim();
  const ValueId query = rows("query", q_dim), row = rows("latent", row_dim);
  const bool has_low = is.query_rank > 0;  // queries of a few numbers
  const ValueId low = has_low ? rows("query latent", is.query_rank) : query;
  const Part parts[] = {has_low ? Part{"q_a", is.query_rank, low} : Part{"q", q_dim, query},
                        {"kv_a", row_dim, row}};
  project_normed(layer, "attention norm", "attention_norm", "attention.", parts);
  if (has_low) {
    const std::string name = layer.name + "attention.q_b";
    const ValueId normed = activation(
        "query latent normed", kind_for(name + ".weight", q_dim, is.query_rank), is.query_rank);
    emit(Operation::rms_norm, layer.label + "q_a norm",
         {low, vector(layer.name + "attention.q_a_norm.weight", is.query_rank), normed},
         NormParams{is.query_rank, is.norm_epsilon, {}});
    matmul(layer.label + "q_b", normed, name + ".weight", q_dim, is.query_rank, query);
    adapt_if_wanted(layer.label + "q_b", normed, name, q_dim, is.query_rank, query);
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

}  // namespace akunu
