// Feed-forward networks, and how any part of a layer reads the residual and is added to it.
#include <cmath>

#include "core/expert_layer.h"
#include "core/forward_builder.h"
#include "core/kernel_params.h"

namespace akunu {

ValueId ForwardBuilder::feed_forward(const Layer& layer, const FeedForward& is) {
  if (!is.experts) return dense(layer, is);
  if (!is.experts->beside_dense) return mixture(layer, is, *is.experts);
  const ValueId of_all = rows("dense normed", arch_.dim);
  norm(layer.label + "dense norm", dense(layer, is), layer.name + "ffn_dense_post_norm", of_all);
  const ValueId of_experts = rows("experts normed", arch_.dim);
  norm(layer.label + "experts post norm", mixture(layer, is, *is.experts),
       layer.name + "experts_post_norm", of_experts);
  emit(Operation::add, layer.label + "dense add", {of_all, of_experts},
       AddParams{arch_.dim, 0, {}});
  return of_all;
}

ValueId ForwardBuilder::dense(const Layer& layer, const FeedForward& is) {
  const ValueId gate = rows("gate", is.dim);
  const ValueId up = rows("up", is.dim);
  std::vector<Part> parts;
  if (is.is_gated) parts.push_back({"gate", is.dim, gate});
  parts.push_back({"up", is.dim, up});
  project_normed(layer, "ffn norm", norm_before_network(layer), "ffn.", parts);

  const ValueId hidden =
      activation("hidden", kind_for(layer.name + "ffn.down.weight", arch_.dim, is.dim), is.dim);
  const uint32_t function = number_of(is.activation);
  if (!is.is_gated) {
    emit(Operation::activate, layer.label + "activation", {up, hidden},
         ActivateParams{is.dim, function, 0, 0});
    return project(layer, "down", hidden, "ffn.down", is.dim);
  }
  if (is.gate_factor != 1)
    emit(Operation::scale, layer.label + "gate scale", {gate},
         ScaleParams{is.dim, is.gate_factor, {}});
  if (is.gate_cut)
    emit(Operation::sparsify, layer.label + "gate cut", {gate},
         SparsifyParams{is.dim, *is.gate_cut, {}});
  emit(Operation::gated_activation, layer.label + "activation", {gate, up, hidden},
       GatedActivationParams{is.dim, function, 0, 0});
  return project(layer, "down", hidden, "ffn.down", is.dim);
}

// A row's experts, and the one that all rows go through where there is one.
ValueId ForwardBuilder::mixture(const Layer& layer, const FeedForward& is, const Experts& experts) {
  ExpertLayer of{is, layer.name + "ffn.", layer.label};
  if (experts.beside_dense) {
    of.router_input = activation(
        "router normed", kind_for(of.name + "router.weight", experts.n, arch_.dim), arch_.dim);
    norm(layer.label + "router norm", residual_, of.name + "router_norm", of.router_input);
    norm_inputs(layer, "experts norm", "experts_norm", "ffn.", expert_input_kinds(*this, of));
    return emit_experts(*this, of, inputs_);
  }
  norm_inputs(layer, "ffn norm", norm_before_network(layer), "ffn.", expert_input_kinds(*this, of));
  ValueId combined = emit_experts(*this, of, inputs_);
  reduce(layer.label + "experts", combined, arch_.dim);
  return combined;
}

// In a parallel layer the network reads what attention reads; alone, it has the layer's only norm.
const char* ForwardBuilder::norm_before_network(const Layer& layer) const {
  return arch_.parallel || layer.is.has<NoMixer>() ? "attention_norm" : "ffn_norm";
}

// Emits the norm of the residual and each part's projection of it. In post-norm models
// (NormPlace::after_sum, as in BERT) the residual is the output of a norm already.
void ForwardBuilder::project_normed(const Layer& layer, const char* norm_label,
                                    const std::string& norm_name, const std::string& prefix,
                                    std::span<const Part> parts) {
  std::vector<ActivationKind> kinds;
  for (const Part& part : parts)
    kinds.push_back(kind_for(layer.name + prefix + part.name + ".weight", part.n, arch_.dim));
  norm_inputs(layer, norm_label, norm_name, prefix, kinds);
  project_parts(layer, prefix, parts);
}

// inputs_: the norm of the residual in these kinds.
void ForwardBuilder::norm_inputs(const Layer& layer, const char* norm_label,
                                 const std::string& norm_name, const std::string& prefix,
                                 std::span<const ActivationKind> kinds) {
  // ModernBERT's first layer has no norm of its own: the embedding's is right before it.
  const bool begins_normed = layer.index == 0 && norm_name == "attention_norm" &&
                             sum_.value != kNoValue &&
                             find(layer.name + norm_name + ".weight") == nullptr;
  // The norm is written once per activation kind that the weights want: usually one. In a parallel
  // layer it is attention's, for the feed-forward network too; a scan beside attention reads it likewise.
  const bool has_own = !arch_.parallel && !(shares_input(layer) && prefix == "scan.");
  if (has_own || prefix == "attention.") inputs_.clear();
  for (const ActivationKind kind : kinds) {
    if (inputs_.contains(kind)) continue;
    inputs_[kind] = arch_.norm_place == NormPlace::before && !begins_normed
                        ? norm_of_residual(layer, norm_label, norm_name, kind)
                        : residual_as(kind);
  }
}

void ForwardBuilder::project_parts(const Layer& layer, const std::string& prefix,
                                   std::span<const Part> parts) {
  const auto name = [&](const Part& part) { return layer.name + prefix + part.name; };
  const auto kind = [&](const Part& part) {
    return kind_for(name(part) + ".weight", part.n, arch_.dim);
  };
  for (const Part& part : parts)
    matmul(layer.label + part.name, inputs_.at(kind(part)), name(part) + ".weight", part.n,
           arch_.dim, part.out);
  for (const Part& part : parts)
    bias_if_present(layer.label + part.name + " bias", part.out, name(part) + ".bias", part.n);
  for (const Part& part : parts)
    adapt_if_wanted(layer.label + part.name, inputs_.at(kind(part)), name(part), part.n, arch_.dim,
                    part.out);
}

ValueId ForwardBuilder::norm_of_residual(const Layer& layer, const char* label,
                                         const std::string& name, ActivationKind kind) {
  const ValueId normed = activation("normed", kind, arch_.dim);
  norm(layer.label + label, residual_, layer.name + name, normed);
  return normed;
}

// The residual, a normed sum or without a norm, in the kind that a weight wants.
ValueId ForwardBuilder::residual_as(ActivationKind kind) {
  if (kind == ActivationKind::f32) return residual_;
  const ValueId normed = activation("normed", kind, arch_.dim);
  if (arch_.norm_place == NormPlace::none) return plain_residual_as(kind, "residual");
  norm(sum_.label, sum_.value, sum_.norm, normed);
  return normed;
}

// The residual without a norm, in the kind that a weight wants.
ValueId ForwardBuilder::plain_residual_as(ActivationKind kind, const std::string& label) {
  if (kind == ActivationKind::f32) return residual_;
  const ValueId plain = activation("normed", kind, arch_.dim);
  emit(Operation::activate, label, {residual_, plain},
       ActivateParams{arch_.dim, kActivationNone, 0, 0});
  return plain;
}

// weight * input (+ bias), as wide as the residual
ValueId ForwardBuilder::project(const Layer& layer, const char* label, ValueId input,
                                const std::string& name, uint32_t k) {
  // Where two parts read one input, both wait to be added.
  ValueId projected =
      rows(shares_input(layer) ? std::string(label) + " projected" : "projected", arch_.dim);
  matmul(layer.label + label, input, layer.name + name + ".weight", arch_.dim, k, projected);
  reduce(layer.label + label, projected, arch_.dim);
  bias_if_present(layer.label + label + " bias", projected, layer.name + name + ".bias", arch_.dim);
  adapt_if_wanted(layer.label + label, input, layer.name + name, arch_.dim, k, projected);
  return projected;
}

// residual += made, the result of attention or feed-forward, after a norm of its own where the model
// has one (Gemma 2 and 3), and times a factor. Or, with norms behind the sums: residual = norm(residual + made).
void ForwardBuilder::add_to_residual(const Layer& layer, const std::string& label, ValueId made,
                                     const std::string& norm_name, const std::string& sum_norm_name,
                                     float factor) {
  if (arch_.norm_place == NormPlace::after_sum) {
    emit(Operation::add, layer.label + label + " add", {made, residual_},
         AddParams{arch_.dim, 0, {}});
    norm_sum(layer.label + label + " norm", made, layer.name + sum_norm_name);
    return;
  }
  if (arch_.post_norms || find(layer.name + norm_name + ".weight") != nullptr) {
    const ValueId normed = rows("post-normed", arch_.dim);
    norm(layer.label + label + " norm", made, layer.name + norm_name, normed);
    made = normed;
  }
  if (const float scale = arch_.residual_scale * factor; scale != 1)
    emit(Operation::scale, layer.label + label + " scale", {made},
         ScaleParams{arch_.dim, scale, {}});
  emit(Operation::add, layer.label + label + " add", {residual_, made},
       AddParams{arch_.dim, 0, {}});
}

}  // namespace akunu
