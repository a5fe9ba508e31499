#include "core/expert_layer.h"

#include <span>

#include "core/kernel_params.h"

namespace akunu {
namespace {

constexpr const char* kStacks[] = {"experts.gate", "experts.up"};

bool is_gated(const ExpertLayer& layer) { return layer.is.is_gated; }

// The first projections of each expert: without gates, the second of them alone.
std::span<const char* const> stacks_of(const ExpertLayer& layer) {
  return std::span(kStacks).subspan(is_gated(layer) ? 0 : 1);
}

// A matmul of the normed residual.
struct Projection {
  const char* name;
  uint32_t n;
};

std::vector<Projection> shared_projections(const Emitter& emitter, const ExpertLayer& layer) {
  const uint32_t n = layer.is.experts->shared_dim;
  if (n == 0) return {};
  std::vector<Projection> projections;
  if (is_gated(layer)) projections.push_back({"shared.gate", n});
  projections.push_back({"shared.up", n});
  if (emitter.find(layer.name + "shared_router.weight") != nullptr)
    projections.push_back({"shared_router", 1});
  return projections;
}

class ExpertBuilder {
 public:
  ExpertBuilder(Emitter& emitter, const ExpertLayer& layer,
                const std::map<ActivationKind, ValueId>& inputs)
      : emitter_(emitter),
        layer_(layer),
        experts_(*layer.is.experts),
        dim_(emitter.arch().dim),
        inputs_(inputs) {}

  ValueId build() {
    const ValueId routes = route();
    const uint32_t n_chosen = experts_.n_chosen;
    ValueId made[2] = {kNoValue, kNoValue};
    size_t n_made = 0;
    for (const char* const stack : stacks_of(layer_)) {
      const ValueId each = emitter_.rows(stack, uint64_t{n_chosen} * experts_.dim);
      matmul(stack, input_of(stack, experts_.n * experts_.dim), routes, experts_.dim, dim_, 1,
             each);
      made[n_made++] = each;
    }
    const ActivationKind kind =
        emitter_.kind_for(layer_.name + "experts.down.weight", experts_.n * dim_, experts_.dim);
    const ValueId hidden =
        emitter_.activation("experts hidden", kind, experts_.dim, Extent::rows, n_chosen);
    emitter_.emit(Operation::expert_activation, label("experts activation"),
                  {made[0], made[1], hidden},
                  ExpertActivationParams{experts_.dim,
                                         n_chosen,
                                         experts_.limit > 0 ? kActivationClamped : activation(),
                                         experts_.limit,
                                         experts_.alpha,
                                         {}});
    const ValueId outputs = emitter_.rows("experts.down", uint64_t{n_chosen} * dim_);
    matmul("experts.down", hidden, routes, dim_, experts_.dim, n_chosen, outputs);
    const ValueId combined = emitter_.rows("combined", dim_);
    emitter_.emit(Operation::expert_combine, label("experts combine"), {outputs, routes, combined},
                  ExpertCombineParams{dim_, n_chosen, {}});
    if (experts_.shared_dim > 0)
      emitter_.emit(Operation::add, label("shared add"), {combined, shared()},
                    AddParams{dim_, 0, {}});
    return combined;
  }

 private:
  std::string label(const std::string& what) const { return layer_.label + what; }
  uint32_t activation() const { return number_of(layer_.is.activation); }
  ValueId input_of(const std::string& name, uint64_t n) const {
    return inputs_.at(emitter_.kind_for(layer_.name + name + ".weight", n, dim_));
  }

  ValueId route() {
    const uint32_t n = experts_.n;
    const ValueId logits = emitter_.rows("router logits", n);
    const ValueId input =
        layer_.router_input != kNoValue ? layer_.router_input : input_of("router", n);
    emitter_.matmul(label("router"), input, layer_.name + "router.weight", n, dim_, logits);
    if (experts_.router_scale != 1)
      emitter_.emit(Operation::scale, label("router scale"), {logits},
                    ScaleParams{n, experts_.router_scale, {}});
    emitter_.bias_if_present(label("router bias"), logits, layer_.name + "router.bias", n);
    const std::string choice = layer_.name + "router_choice.bias";
    const ValueId bias = emitter_.find(choice) == nullptr ? kNoValue : emitter_.vector(choice, n);
    const std::string scale = layer_.name + "experts_scale.weight";
    const ValueId scales = emitter_.find(scale) == nullptr ? kNoValue : emitter_.vector(scale, n);
    const ValueId routes = emitter_.rows("routes", 2 * experts_.n_chosen);  // two words each
    emitter_.emit(Operation::route, label("route"), {logits, bias, routes, scales},
                  RouteParams{n, experts_.n_chosen, number_of(experts_.scoring),
                              experts_.normalised, experts_.scale, experts_.n_groups,
                              experts_.n_groups_chosen, experts_.group_best});
    return routes;
  }

  void matmul(const std::string& stack, ValueId input, ValueId routes, uint32_t n, uint32_t k,
              uint32_t n_inputs, ValueId out) {
    const std::string name = layer_.name + stack, bias = name + ".bias";
    const uint32_t n_rows = experts_.n * n;
    emitter_.emit(Operation::expert_matmul, label(stack),
                  {input, emitter_.weight(name + ".weight", n_rows, k), routes,
                   emitter_.find(bias) == nullptr ? kNoValue : emitter_.vector(bias, n_rows), out},
                  ExpertMatmulParams{n, k, experts_.n, experts_.n_chosen, n_inputs, {}});
  }

  // What the expert of all rows makes; with a router of its own, times a sigmoid of that: a choice of
  // one among one.
  ValueId shared() {
    const std::vector<Projection> projections = shared_projections(emitter_, layer_);
    std::vector<ValueId> made;
    for (const auto& [name, n] : projections) {
      made.push_back(emitter_.rows(name, n));
      emitter_.matmul(label(name), input_of(name, n), layer_.name + name + ".weight", n, dim_,
                      made.back());
    }
    const uint32_t n = experts_.shared_dim;
    const std::string down = layer_.name + "shared.down.weight";
    const ValueId hidden =
        emitter_.activation("shared hidden", emitter_.kind_for(down, dim_, n), n);
    if (is_gated(layer_))
      emitter_.emit(Operation::gated_activation, label("shared activation"),
                    {made[0], made[1], hidden}, GatedActivationParams{n, activation(), 0, 0});
    else
      emitter_.emit(Operation::activate, label("shared activation"), {made[0], hidden},
                    ActivateParams{n, activation(), 0, 0});
    const ValueId out = emitter_.rows("shared.down", dim_);
    emitter_.matmul(label("shared down"), hidden, down, dim_, n, out);
    const size_t n_projections = is_gated(layer_) ? 2 : 1;
    if (made.size() == n_projections) return out;
    const ValueId route = emitter_.rows("shared route", 2);
    const ValueId weighted = emitter_.rows("shared weighted", dim_);
    emitter_.emit(Operation::route, label("shared route"), {made[n_projections], kNoValue, route},
                  RouteParams{1, 1, kScoreSigmoid, 0, 1, 1, 1, 1});
    emitter_.emit(Operation::expert_combine, label("shared combine"), {out, route, weighted},
                  ExpertCombineParams{dim_, 1, {}});
    return weighted;
  }

  Emitter& emitter_;
  const ExpertLayer& layer_;
  const Experts& experts_;
  const uint32_t dim_;
  const std::map<ActivationKind, ValueId>& inputs_;
};

}  // namespace

std::vector<ActivationKind> expert_input_kinds(const Emitter& emitter, const ExpertLayer& layer) {
  const Experts& experts = *layer.is.experts;
  const auto kind = [&](const std::string& name, uint64_t n) {
    return emitter.kind_for(layer.name + name + ".weight", n, emitter.arch().dim);
  };
  std::vector<ActivationKind> kinds;
  if (!experts.beside_dense) kinds.push_back(kind("router", experts.n));
  for (const char* const stack : stacks_of(layer))
    kinds.push_back(kind(stack, uint64_t{experts.n} * experts.dim));
  for (const auto& [name, n] : shared_projections(emitter, layer)) kinds.push_back(kind(name, n));
  return kinds;
}

ValueId emit_experts(Emitter& emitter, const ExpertLayer& layer,
                     const std::map<ActivationKind, ValueId>& inputs) {
  return ExpertBuilder(emitter, layer, inputs).build();
}

}  // namespace akunu
