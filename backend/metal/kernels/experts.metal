// route, expert_activation and expert_combine; expert_matmul is in expert_matvec.h.
//
// Floor of route: latency, the row of a router is a hundred numbers or a few. A SIMD-group takes a
// row, and each of its lanes every 32nd expert, so that nobody else reads what a lane writes, but
// the groups'. The others: a thread per number, the operands' bytes.
#include "metal/kernels/common.h"
#include "metal/kernels/functions.h"

// A NaN of its own, which no sum makes, says that an expert was taken.
constant constexpr uint kTaken = 0xffc0ffee;
inline bool is_taken(float rank) { return as_type<uint>(rank) == kTaken; }

// The best of experts [begin, end) that are not taken, the first of equals; and the best beside it.
struct Best {
  uint expert;
  float rank, second;
};
inline Best best_of(threadgroup const float* ranks, uint begin, uint end, uint lane) {
  float own = -infinity(), second = -infinity();
  uint expert = kNone, any = kNone;
  for (uint e = begin + lane; e < end; e += 32) {
    const float rank = ranks[e];
    if (is_taken(rank)) continue;
    any = min(any, e);
    if (rank > own || (expert == kNone && rank == own)) {
      second = own;
      own = rank;
      expert = e;
    } else if (rank > second) {
      second = rank;
    }
  }
  Best best;
  best.rank = simd_max(own);
  best.expert = simd_min(own == best.rank ? expert : kNone);
  // Where nothing is a number, any that is not taken.
  const uint fallback = simd_min(any);
  const bool has_best = expert == best.expert && expert != kNone;
  best.second = simd_max(has_best ? second : own);
  if (best.expert == kNone) best.expert = fallback == kNone ? begin : fallback;
  return best;
}

inline void drop_groups(threadgroup float* ranks, constant RouteParams& params, uint lane) {
  const uint size = params.n_experts / params.n_groups;
  for (uint dropped = params.n_groups_chosen; dropped < params.n_groups; ++dropped) {
    uint worst = kNone;
    float least = 0.0f;
    for (uint g = 0; g < params.n_groups; ++g) {
      if (is_taken(ranks[g * size])) continue;
      const Best best = best_of(ranks, g * size, (g + 1) * size, lane);
      const float rank = params.group_best > 1 ? best.rank + best.second : best.rank;
      if (worst == kNone || !(rank > least)) {
        worst = g;
        least = rank;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = lane; e < size; e += 32) ranks[worst * size + e] = as_type<float>(kTaken);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

[[kernel]] void route(device const float* logits [[buffer(0)]],
                      device const float* bias [[buffer(1), function_constant(kIsBound1)]],
                      device ExpertRoute* routes [[buffer(2)]],
                      device const float* scales [[buffer(3), function_constant(kIsBound3)]],
                      constant PassRange& pass [[buffer(23)]],
                      constant RouteParams& params [[buffer(25)]],
                      threadgroup float* ranks [[threadgroup(0)]],
                      uint3 group [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
  const uint row = pass.first_row + group.x, n = params.n_experts;
  logits += ulong(row) * n;
  routes += ulong(row) * params.n_chosen;
  const bool is_softmax = params.scoring == kScoreSoftmax;
  float largest = -infinity(), sum = 0.0f;
  for (uint e = lane; e < n; e += 32) largest = max(largest, logits[e]);
  largest = simd_max(largest);
  if (is_softmax)
    for (uint e = lane; e < n; e += 32) sum += exp_of(logits[e] - largest);
  sum = simd_sum(sum);
  bool by_score = params.group_best > 1;
  if (kIsBound1) by_score = true;
  // Where nothing is added to them, scores are in the order of the logits, which are not rounded.
  for (uint e = lane; e < n; e += 32) {
    float rank = logits[e];
    if (by_score) rank = is_softmax ? exp_of(rank - largest) / sum : 1.0f / (1.0f + exp_of(-rank));
    if (kIsBound1) rank = rank + bias[e];
    ranks[e] = rank;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (params.n_groups_chosen < params.n_groups) drop_groups(ranks, params, lane);

  float top = -infinity();  // of the chosen logits
  for (uint s = 0; s < params.n_chosen; ++s) {
    const uint expert = best_of(ranks, 0, n, lane).expert;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (expert % 32 == lane) ranks[expert] = as_type<float>(kTaken);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    top = max(top, logits[expert]);
    if (lane == 0) routes[s] = ExpertRoute{expert, logits[expert]};
  }
  // One lane does the rest: n_chosen is a handful.
  if (lane != 0) return;
  float total = 0.0f;
  for (uint s = 0; s < params.n_chosen; ++s) {
    const float logit = routes[s].weight;
    const float weight = is_softmax                       ? exp_of(logit - largest) / sum
                         : params.scoring == kScoreChosen ? exp_of(logit - top)
                                                          : 1.0f / (1.0f + exp_of(-logit));
    routes[s].weight = weight;
    total = total + weight;
  }
  const float by_sum = params.scoring == kScoreChosen || params.normalised != 0 ? total : 1.0f;
  for (uint s = 0; s < params.n_chosen; ++s) {
    float weight = routes[s].weight / by_sum * params.scale;
    if (kIsBound3) weight = weight * scales[routes[s].expert];
    routes[s].weight = weight;
  }
}

// out[r, s, j] = act(gate[r, s, j]) * up[r, s, j], or without up
[[kernel]] void expert_activation(device const float* gate [[buffer(0)]],
                                  device const float* up [[buffer(1), function_constant(kIsBound1)]],
                                  device float* out [[buffer(2)]],
                                  constant PassRange& pass [[buffer(23)]],
                                  constant ExpertActivationParams& params [[buffer(25)]],
                                  uint3 position [[thread_position_in_grid]]) {
  const uint n = params.n * params.n_chosen;
  if (position.x >= n) return;
  const ulong i = ulong(pass.first_row + position.y) * n + position.x;
  const float x = gate[i];
  if (params.activation == kActivationClamped) {
    // Written so that a NaN stays one.
    const float g = x > params.limit ? params.limit : x;
    const float u = up[i] > params.limit    ? params.limit
                    : up[i] < -params.limit ? -params.limit
                                            : up[i];
    out[i] = g / (1.0f + exp_of(-params.alpha * g)) * (u + 1.0f);
    return;
  }
  const float made = params.activation == kActivationSilu          ? silu(x)
                     : params.activation == kActivationGelu        ? gelu(x)
                     : params.activation == kActivationReluSquared ? (x < 0.0f ? 0.0f : x * x)
                                                                   : gelu_tanh(x);
  out[i] = kIsBound1 ? made * up[i] : made;
}

// out[r, j] = the sum over s of weight[r, s] * input[r, s, j], in order of s
[[kernel]] void expert_combine(device const float* input [[buffer(0)]],
                               device const ExpertRoute* routes [[buffer(1)]],
                               device float* out [[buffer(2)]],
                               constant PassRange& pass [[buffer(23)]],
                               constant ExpertCombineParams& params [[buffer(25)]],
                               uint3 position [[thread_position_in_grid]]) {
  if (position.x >= params.n) return;
  const ulong row = pass.first_row + position.y;
  routes += row * params.n_chosen;
  input += row * params.n_chosen * params.n + position.x;
  float sum = 0.0f;
  for (uint s = 0; s < params.n_chosen; ++s)
    sum = sum + routes[s].weight * input[ulong(s) * params.n];
  out[row * params.n + position.x] = sum;
}
