// The patterns that `fuse` looks for, and what becomes of their operands and parameters.
#include <algorithm>

#include "core/fuse.h"
#include "core/kernel_params.h"

namespace akunu {
namespace {

// matmul x 2 or 3 of one activation -> matmul_group
bool merge_matmuls(std::span<const Node> nodes, Node& fused) {
  MatmulGroupParams params{};
  params.k = nodes[0].get<MatmulParams>().k;
  fused.operands[0] = nodes[0].operands[0];
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    for (size_t earlier = 0; earlier < i; ++earlier)
      if (fused.operands[kGroupOut + earlier] == node.operands[2]) return false;
    fused.operands[kGroupWeight + i] = node.operands[1];
    fused.operands[kGroupOut + i] = node.operands[2];
    params.n[i] = node.get<MatmulParams>().n;
  }
  fused.set(params);
  return true;
}

// matmul_group, add_bias of one of its results -> matmul_group
bool merge_bias(std::span<const Node> nodes, Node& fused) {
  fused.operands = nodes[0].operands;
  fused.params = nodes[0].params;
  for (size_t i = 0; i < kMaxGroup; ++i) {
    if (fused.operands[kGroupOut + i] != nodes[1].operands[0] ||
        fused.operands[kGroupBias + i] != kNoValue)
      continue;
    fused.operands[kGroupBias + i] = nodes[1].operands[1];
    return true;
  }
  return false;
}

// matmul or rms_norm in f32, add of its result -> matmul_add, norm_add: the sum takes the result's place
bool merge_add(std::span<const Node> nodes, Node& fused) {
  const Node& made = nodes[0];
  const Node& add = nodes[1];
  if (add.get<AddParams>().n_times > 1) return false;
  // Not to itself, nor to what it is made of.
  if (add.operands[0] == made.operands[2] || add.operands[0] == made.operands[0]) return false;
  fused.operands[0] = made.operands[0];
  fused.operands[1] = made.operands[1];
  fused.operands[2] = add.operands[0];
  fused.params = made.params;
  return true;
}

// all_reduce, add of its result -> all_reduce_add
bool merge_reduced_add(std::span<const Node> nodes, Node& fused) {
  const Node& reduce = nodes[0];
  const Node& add = nodes[1];
  if (add.get<AddParams>().n_times > 1 || add.operands[0] == reduce.operands[1] ||
      add.operands[0] == reduce.operands[0])
    return false;
  fused.operands = reduce.operands;
  fused.operands[1] = add.operands[0];
  fused.params = reduce.params;
  return true;
}

// rope of query, rope of key, kv_write of that key -> rope_kv_write
bool merge_rope_kv_write(std::span<const Node> nodes, Node& fused) {
  const Node& query = nodes[0];
  const Node& key = nodes[1];
  const Node& write = nodes[2];
  const auto query_params = query.get<RopeParams>();
  const auto key_params = key.get<RopeParams>();
  const auto write_params = write.get<KvWriteParams>();
  if (query.operands[0] == key.operands[0] || query_params.head_dim != key_params.head_dim ||
      query_params.n_pairs != key_params.n_pairs || query_params.style != key_params.style ||
      key_params.n_heads != write_params.n_kv_heads || key_params.head_dim != write_params.head_dim)
    return false;
  fused.operands[0] = query.operands[0];
  fused.operands[1] = write.operands[0];
  fused.operands[2] = write.operands[1];
  fused.operands[3] = query.operands[1];
  fused.operands[4] = write.operands[2];
  fused.operands[5] = write.operands[3];
  fused.set(RopeKvWriteParams{query_params.n_heads, key_params.n_heads, query_params.head_dim,
                              query_params.n_pairs, query_params.style,
                              write_params.page_table_stride, write_params.page_table_base, 0.0f});
  return true;
}

// head_norm of query and of key, then the above -> norm_rope_kv_write
bool merge_norm_rope_kv_write(std::span<const Node> nodes, Node& fused) {
  const Node& query_norm = nodes[0];
  const Node& key_norm = nodes[1];
  if (!merge_rope_kv_write(nodes.subspan(2), fused)) return false;
  auto params = fused.get<RopeKvWriteParams>();
  const auto query_params = query_norm.get<HeadNormParams>();
  const auto key_params = key_norm.get<HeadNormParams>();
  if (query_params.head_dim != params.head_dim || key_params.head_dim != params.head_dim ||
      query_params.n_heads != params.n_heads || key_params.n_heads != params.n_kv_heads ||
      query_params.epsilon != key_params.epsilon)
    return false;
  params.epsilon = query_params.epsilon;
  fused.set(params);
  fused.operands[6] = query_norm.operands[1];
  fused.operands[7] = key_norm.operands[1];
  return true;
}

// rms_norm, matmul of what it makes -> norm_matmul_group of one
bool merge_norm_matmul(std::span<const Node> nodes, Node& fused) {
  const Node& norm = nodes[0];
  const Node& matmul = nodes[1];
  const auto params = matmul.get<MatmulParams>();
  fused.operands[0] = norm.operands[0];
  fused.operands[kGroupWeight] = matmul.operands[1];
  fused.operands[kGroupOut] = matmul.operands[2];
  fused.operands[kGroupNorm] = norm.operands[1];
  fused.set(
      NormMatmulGroupParams{params.k, {params.n, 0, 0}, norm.get<NormParams>().epsilon, {0, 0, 0}});
  return true;
}

// rms_norm, matmul_group of what it makes -> norm_matmul_group
bool merge_norm_group(std::span<const Node> nodes, Node& fused) {
  const Node& norm = nodes[0];
  const Node& group = nodes[1];
  const auto params = group.get<MatmulGroupParams>();
  fused.operands = group.operands;
  fused.operands[0] = norm.operands[0];
  fused.operands[kGroupNorm] = norm.operands[1];
  NormMatmulGroupParams normed{};
  normed.k = params.k;
  std::copy(std::begin(params.n), std::end(params.n), normed.n);
  normed.epsilon = norm.get<NormParams>().epsilon;
  fused.set(normed);
  return true;
}

// Whether a group is two matmuls without a bias, of as many columns as the activation takes.
bool is_gate_and_up(const Node& group, const uint32_t (&n)[kMaxGroup],
                    const GatedActivationParams& activation) {
  if (activation.up_stride != 0) return false;
  for (size_t i = 0; i < kMaxGroup; ++i)
    if (group.operands[kGroupBias + i] != kNoValue || (n[i] == 0) != (i >= 2)) return false;
  return n[0] == activation.n && n[1] == activation.n;
}

// norm_matmul_group of gate and up, their gated_activation -> norm_gated_matmul
bool merge_norm_gated(std::span<const Node> nodes, Node& fused) {
  const Node& group = nodes[0];
  const Node& gated = nodes[1];
  const auto params = group.get<NormMatmulGroupParams>();
  const auto activation = gated.get<GatedActivationParams>();
  if (activation.activation > kActivationGeluTanh) return false;  // fused kernels have no others
  if (!is_gate_and_up(group, params.n, activation)) return false;
  fused.operands[0] = group.operands[0];
  fused.operands[1] = group.operands[kGroupWeight];
  fused.operands[2] = group.operands[kGroupWeight + 1];
  fused.operands[3] = group.operands[kGroupNorm];
  fused.operands[4] = gated.operands[2];
  fused.set(NormGatedMatmulParams{params.k, params.n[0], activation.activation, params.epsilon});
  return true;
}

// matmul_group of gate and up, their gated_activation -> gated_matmul
bool merge_gated(std::span<const Node> nodes, Node& fused) {
  const Node& group = nodes[0];
  const Node& gated = nodes[1];
  const auto params = group.get<MatmulGroupParams>();
  const auto activation = gated.get<GatedActivationParams>();
  if (activation.activation > kActivationGeluTanh) return false;  // fused kernels have no others
  if (!is_gate_and_up(group, params.n, activation)) return false;
  fused.operands[0] = group.operands[0];
  fused.operands[1] = group.operands[kGroupWeight];
  fused.operands[2] = group.operands[kGroupWeight + 1];
  fused.operands[3] = gated.operands[2];
  fused.set(GatedMatmulParams{params.k, params.n[0], activation.activation, 0});
  return true;
}

// rope_kv_write or norm_rope_kv_write, attention of that query to those pools -> rope_attention
bool merge_rope_attention(std::span<const Node> nodes, Node& fused) {
  const Node& write = nodes[0];
  const Node& attention = nodes[1];
  const auto rope = write.get<RopeKvWriteParams>();
  const auto params = attention.get<AttentionParams>();
  if (rope.n_heads != params.n_heads || rope.n_kv_heads != params.n_kv_heads ||
      rope.head_dim != params.head_dim || rope.page_table_base != params.page_table_base)
    return false;
  fused.operands = write.operands;
  fused.operands[8] = attention.operands[3];
  fused.set(RopeAttentionParams{rope.n_heads, rope.n_kv_heads, rope.head_dim, rope.n_pairs,
                                rope.style, params.window, params.scale, params.soft_cap,
                                params.page_table_stride, params.page_table_base, rope.epsilon, 0});
  return true;
}

// matmul_group of query, key and value, their rope_kv_write or norm_rope_kv_write ->
// matmul_rope_kv_write
bool merge_matmul_rope_kv_write(std::span<const Node> nodes, Node& fused) {
  const Node& group = nodes[0];
  const Node& write = nodes[1];
  const auto params = group.get<MatmulGroupParams>();
  const auto rope = write.get<RopeKvWriteParams>();
  const uint32_t n_heads[] = {rope.n_heads, rope.n_kv_heads, rope.n_kv_heads};
  static_assert(std::size(n_heads) == kMaxGroup);
  for (size_t i = 0; i < kMaxGroup; ++i) {
    if (params.n[i] != n_heads[i] * rope.head_dim) return false;
    fused.operands[kGroupWeight + i] = group.operands[kGroupWeight + i];
    fused.operands[kGroupBias + i] = group.operands[kGroupBias + i];
  }
  fused.operands[0] = group.operands[0];
  fused.operands[kGroupOut] = write.operands[0];  // and what follows key and value behind it
  for (size_t i = 3; i < 8; ++i) fused.operands[kGroupOut + i - 2] = write.operands[i];
  fused.set(MatmulRopeKvWriteParams{params.k, rope, {0, 0, 0}});
  return true;
}

// A link's slots are those of core/operation.cpp: {from, from_slot, to, to_slot}.
constexpr uint8_t kOut = kGroupOut;

std::vector<FusionRule> all_rules() {
  using enum Operation;
  // The nodes of rope_kv_write, from the first one of them on.
  const auto rotated_keys = [](uint8_t first, std::vector<FusionLink> before) {
    const auto query = first, key = static_cast<uint8_t>(first + 1),
               write = static_cast<uint8_t>(first + 2);
    before.push_back({query, 1, key, 1});  // one row of angles
    before.push_back({key, 0, write, 0});
    return before;
  };
  const std::vector<FusionLink> one_input_2{{0, 0, 1, 0}}, one_input_3{{0, 0, 1, 0}, {0, 0, 2, 0}};
  const std::vector<FusionLink> biased{{0, kAnyWritten, 1, 0}};
  const std::vector<FusionLink> normed{{0, 2, 1, 0}};
  const std::vector<FusionLink> gate_and_up{{0, kOut, 1, 0}, {0, kOut + 1, 1, 1}};
  const std::vector<FusionLink> query_key_value{
      {0, kOut, 1, 0}, {0, kOut + 1, 1, 1}, {0, kOut + 2, 1, 2}};
  const std::vector<FusionLink> query_and_pools{{0, 0, 1, 0}, {0, 4, 1, 1}, {0, 5, 1, 2}};
  return {
      {norm_rope_kv_write,
       {head_norm, head_norm, rope, rope, kv_write},
       rotated_keys(2, {{0, 0, 2, 0}, {1, 0, 3, 0}}),
       merge_norm_rope_kv_write},
      {rope_kv_write, {rope, rope, kv_write}, rotated_keys(0, {}), merge_rope_kv_write},
      {matmul_group, {matmul, matmul, matmul}, one_input_3, merge_matmuls},
      {matmul_group, {matmul, matmul}, one_input_2, merge_matmuls},
      {matmul_group, {matmul_group, add_bias}, biased, merge_bias},
      {matmul_add, {matmul, add}, {{0, 2, 1, 1}}, merge_add},
      {norm_add, {rms_norm, add}, {{0, 2, 1, 1}}, merge_add},
      {all_reduce_add, {all_reduce, add}, {{0, 1, 1, 1}}, merge_reduced_add},
      {norm_matmul_group, {rms_norm, matmul_group}, normed, merge_norm_group},
      {norm_matmul_group, {rms_norm, matmul}, normed, merge_norm_matmul},
      {norm_matmul_group, {norm_matmul_group, add_bias}, biased, merge_bias},
      {norm_gated_matmul, {norm_matmul_group, gated_activation}, gate_and_up, merge_norm_gated},
      {gated_matmul, {matmul_group, gated_activation}, gate_and_up, merge_gated},
      {matmul_rope_kv_write,
       {matmul_group, rope_kv_write},
       query_key_value,
       merge_matmul_rope_kv_write},
      {matmul_rope_kv_write,
       {matmul_group, norm_rope_kv_write},
       query_key_value,
       merge_matmul_rope_kv_write},
      {rope_attention, {rope_kv_write, attention}, query_and_pools, merge_rope_attention},
      {rope_attention, {norm_rope_kv_write, attention}, query_and_pools, merge_rope_attention},
  };
}

}  // namespace

std::span<const FusionRule> fusion_rules() {
  // Never destroyed: a model may be loading while the process ends.
  static const auto& rules = *new std::vector<FusionRule>(all_rules());
  return rules;
}

}  // namespace akunu
