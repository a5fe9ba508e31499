// route:             the experts of each row and their weights; docs/kernels.md has the steps
//   0 logits: rows [rows, n_experts]   1 bias: vector [n_experts], optional
//   2 routes: ExpertRoute [rows, n_chosen]   3 scales: vector [n_experts], optional
//                                                                     25 RouteParams
//   slices: one row
// expert_activation: out[r, s, i] = kind(act(gate[r, s, i]) * up[r, s, i]), without the product where there is no up
//   0 gate, 1 up: rows [rows, n_chosen * n]; up is optional   2 out: activation [rows * n_chosen, n]
//                                                                     25 ExpertActivationParams
//   slices: one expert of a row
// expert_combine:    out[r, i] = sum of weight * input[r, s, i] over the row's experts, in their order
//   0 input: rows [rows, n_chosen * n]   1 routes   2 out: rows [rows, n]   25 ExpertCombineParams
//   slices: kPiece numbers of a row
//   limit:  a row of a router is a hundred numbers or a few; the others wait for memory
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/plain_activation.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct Route {
  // Scores, and what the choice goes by.
  static uint64_t scratch_bytes(const Call& call) {
    return 2 * sizeof(float) * padded(static_cast<const RouteParams*>(call.params)->n_experts);
  }

  static void row(const Call& call, const RouteParams& params, uint64_t r, std::byte* scratch) {
    const float* const logits = operand<const float>(call, 0, r, params.n_experts);
    const auto* const bias = reinterpret_cast<const float*>(call.operands[1]);
    auto* const routes = operand<ExpertRoute>(call, 2, r, params.n_chosen);
    auto* const scores = reinterpret_cast<float*>(scratch);
    float* const ranks = scores + padded(params.n_experts);

    if (params.scoring != kScoreChosen) score(params, logits, scores);
    // Where nothing is added to them, scores are in the order of the logits, which are not rounded.
    const bool by_score = bias != nullptr || params.group_best > 1;
    for (uint32_t e = 0; e < params.n_experts; ++e) {
      ranks[e] = by_score ? scores[e] : logits[e];
      if (bias != nullptr) ranks[e] = ranks[e] + bias[e];
    }
    if (params.n_groups_chosen < params.n_groups) drop_groups(params, ranks);
    for (uint32_t s = 0; s < params.n_chosen; ++s) {
      const uint32_t best = take_best(ranks, params.n_experts);
      routes[s] = {best, params.scoring == kScoreChosen ? logits[best] : scores[best]};
    }
    if (params.scoring == kScoreChosen) softmax_of_routes(params.n_chosen, routes);
    float sum = 1;
    if (params.normalised != 0) {
      sum = 0;
      for (uint32_t s = 0; s < params.n_chosen; ++s) sum = sum + routes[s].weight;
    }
    const auto* const scales = reinterpret_cast<const float*>(call.operands[3]);
    for (uint32_t s = 0; s < params.n_chosen; ++s) {
      routes[s].weight = routes[s].weight / sum * params.scale;
      if (scales != nullptr) routes[s].weight = routes[s].weight * scales[routes[s].expert];
    }
  }

 private:
  static uint32_t padded(uint32_t n) { return (n + 15) / 16 * 16; }

  static void score(const RouteParams& params, const float* logits, float* scores) {
    const uint32_t n = params.n_experts;
    const bool is_softmax = params.scoring == kScoreSoftmax;
    float largest = logits[0];
    for (uint32_t e = 1; e < n; ++e)
      if (logits[e] > largest) largest = logits[e];
    const auto zero = Isa::zero(), one = Isa::broadcast(1.0f), top = Isa::broadcast(largest);
    for (uint32_t e = 0; e < n; e += Isa::kLanes) {
      const uint32_t count = n - e < Isa::kLanes ? n - e : Isa::kLanes;
      const auto logit = Isa::load(logits + e, count);
      Isa::store(scores + e,
                 is_softmax ? exp<Isa>(Isa::subtract(logit, top))
                            : Isa::divide(one, Isa::add(one, exp<Isa>(Isa::subtract(zero, logit)))),
                 count);
    }
    if (!is_softmax) return;
    float sum = 0;
    for (uint32_t e = 0; e < n; ++e) sum = sum + scores[e];
    for (uint32_t e = 0; e < n; ++e) scores[e] = scores[e] / sum;
  }

  // Of the logits in the routes' weights.
  static void softmax_of_routes(uint32_t n_chosen, ExpertRoute* routes) {
    float largest = routes[0].weight;  // with a bias another may be larger
    for (uint32_t s = 1; s < n_chosen; ++s)
      if (routes[s].weight > largest) largest = routes[s].weight;
    float sum = 0;
    for (uint32_t s = 0; s < n_chosen; ++s) {
      float lanes[Isa::kLanes];
      Isa::store(lanes, exp<Isa>(Isa::broadcast(routes[s].weight - largest)));
      routes[s].weight = lanes[0];
      sum = sum + lanes[0];
    }
    for (uint32_t s = 0; s < n_chosen; ++s) routes[s].weight = routes[s].weight / sum;
  }

  // The first of the largest, whose rank is -infinity afterwards. What is not a number is larger than nothing: an
  // expert that was not taken is found in any case.
  static uint32_t take_best(float* ranks, uint32_t n) {
    uint32_t best = kNone;
    for (uint32_t e = 0; e < n; ++e) {
      if (is_taken(ranks[e])) continue;
      if (best == kNone || ranks[e] > ranks[best]) best = e;
    }
    if (best == kNone) best = 0;  // groups without a number
    take(ranks[best]);
    return best;
  }
  // A NaN of its own, which no sum makes, says that an expert was taken.
  static constexpr uint32_t kTaken = 0xffc0ffee;
  static bool is_taken(float rank) { return __builtin_bit_cast(uint32_t, rank) == kTaken; }
  static void take(float& rank) { __builtin_memcpy(&rank, &kTaken, sizeof rank); }

  // Leaves the experts of the best groups.
  static void drop_groups(const RouteParams& params, float* ranks) {
    const uint32_t size = params.n_experts / params.n_groups;
    // A group's rank goes by its best; those that stay are counted out one by one.
    for (uint32_t dropped = params.n_groups_chosen; dropped < params.n_groups; ++dropped) {
      uint32_t worst = kNone;
      float least = 0;
      for (uint32_t g = 0; g < params.n_groups; ++g) {
        const float* const group = ranks + uint64_t{g} * size;
        if (is_taken(group[0])) continue;
        const float rank = rank_of_group(params, group, size);
        if (worst == kNone || !(rank > least)) {
          worst = g;
          least = rank;
        }
      }
      for (uint32_t e = 0; e < size; ++e) take(ranks[uint64_t{worst} * size + e]);
    }
  }
  static float rank_of_group(const RouteParams& params, const float* ranks, uint32_t size) {
    float best = ranks[0], second = -__builtin_inff();
    for (uint32_t e = 1; e < size; ++e) {
      if (ranks[e] > best) {
        second = best;
        best = ranks[e];
      } else if (ranks[e] > second) {
        second = ranks[e];
      }
    }
    return params.group_best > 1 ? best + second : best;
  }
};

template <class Isa, class Activation>
struct ExpertActivation {
  static uint64_t slices(const Call& call) {
    return uint64_t{call.n_rows} *
           static_cast<const ExpertActivationParams*>(call.params)->n_chosen;
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const ExpertActivationParams*>(call.params);
    for (uint64_t slice = begin; slice < end; ++slice) {
      const uint64_t pair = uint64_t{call.first_row} * params.n_chosen + slice;
      const float* const gate = operand<const float>(call, 0, pair, params.n);
      const auto write_each = [&](const auto& of) {
        Activation::write(call.operands[2] + pair * Activation::row_bytes(params.n), params.n, 0,
                          params.n, of);
      };
      if (call.operands[1] == nullptr) {
        with_gate_activation<Isa>(params.activation, [&](const auto& function) {
          write_each([&](uint32_t i, uint32_t n) { return function(Isa::load(gate + i, n)); });
        });
        continue;
      }
      const float* const up = operand<const float>(call, 1, pair, params.n);
      const auto write = [&](const auto& value) {
        write_each([&](uint32_t i, uint32_t n) {
          return value(Isa::load(gate + i, n), Isa::load(up + i, n));
        });
      };
      if (params.activation == kActivationClamped)
        write([&](Vector g, Vector u) { return clamped(params, g, u); });
      else
        with_gate_activation<Isa>(params.activation, [&](const auto& function) {
          write([&](Vector g, Vector u) { return Isa::multiply(function(g), u); });
        });
    }
  }

 private:
  using Vector = typename Isa::Vector;
  static Vector clamped(const ExpertActivationParams& params, Vector gate, Vector up) {
    const auto limit = Isa::broadcast(params.limit), one = Isa::broadcast(1.0f);
    // A NaN is the second argument, and stays.
    gate = Isa::minimum(limit, gate);
    up = Isa::minimum(limit, Isa::maximum(Isa::broadcast(-params.limit), up));
    const auto e = exp<Isa>(Isa::multiply(Isa::broadcast(-params.alpha), gate));
    return Isa::multiply(Isa::divide(gate, Isa::add(one, e)), Isa::add(up, one));
  }
};

template <class Isa>
struct ExpertCombine {
  static constexpr uint32_t kPiece = 512;

  static uint64_t slices(const Call& call) { return call.n_rows * pieces(call); }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const ExpertCombineParams*>(call.params);
    for (uint64_t slice = begin; slice < end; ++slice) {
      const uint64_t r = call.first_row + slice / pieces(call);
      const uint32_t first = static_cast<uint32_t>(slice % pieces(call)) * kPiece;
      const uint32_t last = params.n - first < kPiece ? params.n : first + kPiece;
      const auto* const routes = operand<const ExpertRoute>(call, 1, r, params.n_chosen);
      const float* const input =
          operand<const float>(call, 0, r, uint64_t{params.n_chosen} * params.n);
      float* const out = operand<float>(call, 2, r, params.n);
      for (uint32_t i = first; i < last; i += Isa::kLanes) {
        const uint32_t count = last - i < Isa::kLanes ? last - i : Isa::kLanes;
        auto sum = Isa::zero();
        for (uint32_t s = 0; s < params.n_chosen; ++s)
          sum = Isa::add(sum, Isa::multiply(Isa::broadcast(routes[s].weight),
                                            Isa::load(input + uint64_t{s} * params.n + i, count)));
        Isa::store(out + i, sum, count);
      }
    }
  }

 private:
  static uint64_t pieces(const Call& call) {
    return (uint64_t{static_cast<const ExpertCombineParams*>(call.params)->n} + kPiece - 1) /
           kPiece;
  }
};

using RouteRows = RowsKernel<ThisIsa, RouteParams, Route<ThisIsa>>;
using Combine = ExpertCombine<ThisIsa>;

template <template <class> class Activation>
constexpr KernelEntry expert_activation_entry() {
  using Each = ExpertActivation<ThisIsa, Activation<ThisIsa>>;
  return {{Operation::expert_activation, Activation<ThisIsa>::kKind},
          {Each::slices, Each::run, nullptr}};
}

constexpr KernelEntry kExpertEntries[] = {
    {{Operation::route}, {RouteRows::slices, RouteRows::run, Route<ThisIsa>::scratch_bytes}},
    expert_activation_entry<F32Activation>(),
    expert_activation_entry<Bf16Activation>(),
    expert_activation_entry<Bf16PairActivation>(),
    expert_activation_entry<Q8Activation>(),
    expert_activation_entry<Q16Activation>(),
    {{Operation::expert_combine}, {Combine::slices, Combine::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::experts() {
  return list_of(kExpertEntries);
}

}  // namespace akunu::cpu
