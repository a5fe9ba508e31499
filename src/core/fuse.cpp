#include "core/fuse.h"

#include <algorithm>

#include "core/kernel_params.h"

namespace akunu {
namespace {

// Slots of matmul_group.
constexpr size_t kGroupWeight = 1;
constexpr size_t kGroupBias = 4;
constexpr size_t kGroupOut = 7;
constexpr size_t kGroupNorm = 10;  // norm_matmul_group only

// matmul x 2 or 3 of one activation -> matmul_group
bool merge_matmuls(std::span<const Node> sequence, Node& fused, std::vector<ValueId>&) {
  MatmulGroupParams params{};
  params.k = sequence[0].get<MatmulParams>().k;
  fused.operands[0] = sequence[0].operands[0];
  for (size_t i = 0; i < sequence.size(); ++i) {
    const Node& node = sequence[i];
    if (node.operands[0] != fused.operands[0]) return false;
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
bool merge_bias(std::span<const Node> sequence, Node& fused, std::vector<ValueId>&) {
  fused.operands = sequence[0].operands;
  fused.params = sequence[0].params;
  for (size_t i = 0; i < kMaxGroup; ++i) {
    if (fused.operands[kGroupOut + i] == kNoValue ||
        fused.operands[kGroupOut + i] != sequence[1].operands[0] ||
        fused.operands[kGroupBias + i] != kNoValue)
      continue;
    fused.operands[kGroupBias + i] = sequence[1].operands[1];
    return true;
  }
  return false;
}

// matmul, add of its result -> matmul_add
bool merge_matmul_add(std::span<const Node> sequence, Node& fused, std::vector<ValueId>& dropped) {
  const Node& matmul = sequence[0];
  const Node& add = sequence[1];
  if (add.operands[1] != matmul.operands[2] || add.operands[0] == matmul.operands[2]) return false;
  fused.operands[0] = matmul.operands[0];
  fused.operands[1] = matmul.operands[1];
  fused.operands[2] = add.operands[0];
  fused.params = matmul.params;
  dropped.push_back(matmul.operands[2]);
  return true;
}

// rms_norm in f32, add of its result -> norm_add
bool merge_norm_add(std::span<const Node> sequence, Node& fused, std::vector<ValueId>& dropped) {
  const Node& norm = sequence[0];
  const Node& add = sequence[1];
  if (add.operands[1] != norm.operands[2] || add.operands[0] == norm.operands[2] ||
      add.operands[0] == norm.operands[0])
    return false;
  fused.operands[0] = norm.operands[0];
  fused.operands[1] = norm.operands[1];
  fused.operands[2] = add.operands[0];
  fused.params = norm.params;
  dropped.push_back(norm.operands[2]);
  return true;
}

// rope of query, rope of key, kv_write of that key -> rope_kv_write
bool merge_rope_kv_write(std::span<const Node> sequence, Node& fused,
                         std::vector<ValueId>& dropped) {
  const Node& query = sequence[0];
  const Node& key = sequence[1];
  const Node& write = sequence[2];
  const auto query_params = query.get<RopeParams>();
  const auto key_params = key.get<RopeParams>();
  const auto write_params = write.get<KvWriteParams>();
  if (write.operands[0] != key.operands[0] || query.operands[0] == key.operands[0] ||
      query.operands[1] != key.operands[1] || query_params.head_dim != key_params.head_dim ||
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
  dropped.push_back(key.operands[0]);
  return true;
}

// head_norm of query and of key, then the above -> norm_rope_kv_write
bool merge_norm_rope_kv_write(std::span<const Node> sequence, Node& fused,
                              std::vector<ValueId>& dropped) {
  const Node& query_norm = sequence[0];
  const Node& key_norm = sequence[1];
  if (!merge_rope_kv_write(sequence.subspan(2), fused, dropped)) return false;
  auto params = fused.get<RopeKvWriteParams>();
  const auto query_params = query_norm.get<HeadNormParams>();
  const auto key_params = key_norm.get<HeadNormParams>();
  if (query_norm.operands[0] != fused.operands[0] || key_norm.operands[0] != fused.operands[1] ||
      query_params.head_dim != params.head_dim || key_params.head_dim != params.head_dim ||
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
bool merge_norm_matmul(std::span<const Node> sequence, Node& fused, std::vector<ValueId>& dropped) {
  const Node& norm = sequence[0];
  const Node& matmul = sequence[1];
  if (matmul.operands[0] != norm.operands[2]) return false;
  const auto params = matmul.get<MatmulParams>();
  fused.operands[0] = norm.operands[0];
  fused.operands[kGroupWeight] = matmul.operands[1];
  fused.operands[kGroupOut] = matmul.operands[2];
  fused.operands[kGroupNorm] = norm.operands[1];
  fused.set(
      NormMatmulGroupParams{params.k, {params.n, 0, 0}, norm.get<NormParams>().epsilon, {0, 0, 0}});
  dropped.push_back(norm.operands[2]);
  return true;
}

// rms_norm, matmul_group of what it makes -> norm_matmul_group
bool merge_norm_group(std::span<const Node> sequence, Node& fused, std::vector<ValueId>& dropped) {
  const Node& norm = sequence[0];
  const Node& group = sequence[1];
  if (group.operands[0] != norm.operands[2]) return false;
  const auto params = group.get<MatmulGroupParams>();
  fused.operands = group.operands;
  fused.operands[0] = norm.operands[0];
  fused.operands[kGroupNorm] = norm.operands[1];
  fused.set(NormMatmulGroupParams{params.k,
                                  {params.n[0], params.n[1], params.n[2]},
                                  norm.get<NormParams>().epsilon,
                                  {0, 0, 0}});
  dropped.push_back(norm.operands[2]);
  return true;
}

// Whether a group is two matmuls without a bias, whose results the activation takes.
bool is_gate_and_up(const Node& group, const uint32_t (&n)[kMaxGroup], const Node& gated) {
  for (size_t i = 0; i < kMaxGroup; ++i)
    if (group.operands[kGroupBias + i] != kNoValue || (n[i] == 0) != (i == 2)) return false;
  return gated.operands[0] == group.operands[kGroupOut] &&
         gated.operands[1] == group.operands[kGroupOut + 1] && n[0] == n[1] &&
         n[0] == gated.get<GatedActivationParams>().n;
}

// norm_matmul_group of gate and up, their gated_activation -> norm_gated_matmul
bool merge_norm_gated(std::span<const Node> sequence, Node& fused, std::vector<ValueId>& dropped) {
  const Node& group = sequence[0];
  const Node& gated = sequence[1];
  const auto params = group.get<NormMatmulGroupParams>();
  const auto activation = gated.get<GatedActivationParams>();
  if (!is_gate_and_up(group, params.n, gated)) return false;
  fused.operands[0] = group.operands[0];
  fused.operands[1] = group.operands[kGroupWeight];
  fused.operands[2] = group.operands[kGroupWeight + 1];
  fused.operands[3] = group.operands[kGroupNorm];
  fused.operands[4] = gated.operands[2];
  fused.set(NormGatedMatmulParams{params.k, params.n[0], activation.activation, params.epsilon});
  dropped.push_back(gated.operands[0]);
  dropped.push_back(gated.operands[1]);
  return true;
}

// matmul_group of gate and up, their gated_activation -> gated_matmul
bool merge_gated(std::span<const Node> sequence, Node& fused, std::vector<ValueId>& dropped) {
  const Node& group = sequence[0];
  const Node& gated = sequence[1];
  const auto params = group.get<MatmulGroupParams>();
  const auto activation = gated.get<GatedActivationParams>();
  if (!is_gate_and_up(group, params.n, gated)) return false;
  fused.operands[0] = group.operands[0];
  fused.operands[1] = group.operands[kGroupWeight];
  fused.operands[2] = group.operands[kGroupWeight + 1];
  fused.operands[3] = gated.operands[2];
  fused.set(GatedMatmulParams{params.k, params.n[0], activation.activation, 0});
  dropped.push_back(gated.operands[0]);
  dropped.push_back(gated.operands[1]);
  return true;
}

// rope_kv_write or norm_rope_kv_write, attention of that query to those pools -> rope_attention
bool merge_rope_attention(std::span<const Node> sequence, Node& fused,
                          std::vector<ValueId>& dropped) {
  const Node& write = sequence[0];
  const Node& attention = sequence[1];
  const auto rope = write.get<RopeKvWriteParams>();
  const auto params = attention.get<AttentionParams>();
  if (attention.operands[0] != write.operands[0] || attention.operands[1] != write.operands[4] ||
      attention.operands[2] != write.operands[5] || rope.n_heads != params.n_heads ||
      rope.n_kv_heads != params.n_kv_heads || rope.head_dim != params.head_dim ||
      rope.page_table_base != params.page_table_base)
    return false;
  fused.operands = write.operands;
  fused.operands[8] = attention.operands[3];
  fused.set(RopeAttentionParams{rope.n_heads, rope.n_kv_heads, rope.head_dim, rope.n_pairs,
                                rope.style, params.window, params.scale, params.soft_cap,
                                params.page_table_stride, params.page_table_base, rope.epsilon, 0});
  dropped.push_back(write.operands[0]);
  return true;
}

// matmul_group of query, key and value, their rope_kv_write or norm_rope_kv_write -> matmul_rope_kv_write
bool merge_matmul_rope_kv_write(std::span<const Node> sequence, Node& fused,
                                std::vector<ValueId>& dropped) {
  const Node& group = sequence[0];
  const Node& write = sequence[1];
  const auto params = group.get<MatmulGroupParams>();
  const auto rope = write.get<RopeKvWriteParams>();
  const uint32_t n_heads[kMaxGroup] = {rope.n_heads, rope.n_kv_heads, rope.n_kv_heads};
  for (size_t i = 0; i < kMaxGroup; ++i) {
    if (group.operands[kGroupOut + i] != write.operands[i] ||
        params.n[i] != n_heads[i] * rope.head_dim)
      return false;
    fused.operands[kGroupWeight + i] = group.operands[kGroupWeight + i];
    fused.operands[kGroupBias + i] = group.operands[kGroupBias + i];
  }
  fused.operands[0] = group.operands[0];
  fused.operands[kGroupOut] = write.operands[0];  // and what follows key and value behind it
  for (size_t i = 3; i < 8; ++i) fused.operands[kGroupOut + i - 2] = write.operands[i];
  fused.set(MatmulRopeKvWriteParams{params.k, rope, {0, 0, 0}});
  dropped.push_back(write.operands[1]);
  dropped.push_back(write.operands[2]);
  return true;
}

// Whether `value` is read at or after nodes[from], or in a later program, before it is written
// anew.
bool is_read(ValueId value, const std::vector<const std::vector<Node>*>& programs, size_t program,
             size_t from) {
  for (; program < programs.size(); ++program, from = 0) {
    const std::vector<Node>& nodes = *programs[program];
    for (size_t i = from; i < nodes.size(); ++i) {
      const OperationInfo& info = operation_info(nodes[i].operation);
      bool written = false;
      for (size_t slot = 0; slot < info.operands.size(); ++slot) {
        if (nodes[i].operands[slot] != value) continue;
        if (info.operands[slot].access != Access::out) return true;
        written = true;
      }
      if (written) return false;
    }
  }
  return false;
}

bool same_extent(std::span<const Node> nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    return node.extent.symbol == nodes[0].extent.symbol &&
           node.extent.factor == nodes[0].extent.factor;
  });
}

// "layer 0 q", "layer 0 k" -> "layer 0 q, k"
std::string joined_label(std::span<const Node> nodes) {
  std::string label = nodes[0].label;
  for (const Node& node : nodes.subspan(1)) {
    size_t common = 0;
    while (common < nodes[0].label.size() && common < node.label.size() &&
           nodes[0].label[common] == node.label[common])
      ++common;
    while (common > 0 && node.label[common - 1] != ' ') --common;
    label += ", " + node.label.substr(common);
  }
  return label;
}

}  // namespace

std::span<const FusionRule> fusion_rules() {
  using enum Operation;
  // Never destroyed: a model may be loading while the process ends.
  static const auto& rules = *new std::vector<FusionRule>{
      {norm_rope_kv_write, {head_norm, head_norm, rope, rope, kv_write}, merge_norm_rope_kv_write},
      {rope_kv_write, {rope, rope, kv_write}, merge_rope_kv_write},
      {matmul_group, {matmul, matmul, matmul}, merge_matmuls},
      {matmul_group, {matmul, matmul}, merge_matmuls},
      {matmul_group, {matmul_group, add_bias}, merge_bias},
      {matmul_add, {matmul, add}, merge_matmul_add},
      {norm_add, {rms_norm, add}, merge_norm_add},
      {norm_matmul_group, {rms_norm, matmul_group}, merge_norm_group},
      {norm_matmul_group, {rms_norm, matmul}, merge_norm_matmul},
      {norm_matmul_group, {norm_matmul_group, add_bias}, merge_bias},
      {norm_gated_matmul, {norm_matmul_group, gated_activation}, merge_norm_gated},
      {gated_matmul, {matmul_group, gated_activation}, merge_gated},
      {matmul_rope_kv_write, {matmul_group, rope_kv_write}, merge_matmul_rope_kv_write},
      {matmul_rope_kv_write, {matmul_group, norm_rope_kv_write}, merge_matmul_rope_kv_write},
      {rope_attention, {rope_kv_write, attention}, merge_rope_attention},
      {rope_attention, {norm_rope_kv_write, attention}, merge_rope_attention},
  };
  return rules;
}

KernelRequest kernel_request(const Node& node, const Values& values, RowClass row_class) {
  KernelRequest request;
  request.operation = node.operation;
  request.row_class = row_class;
  request.params = node.params;
  const OperationInfo& info = operation_info(node.operation);
  size_t n_weights = 0;
  for (size_t slot = 0; slot < info.operands.size(); ++slot) {
    const OperandKind kind = info.operands[slot].kind;
    const bool present = node.operands[slot] != kNoValue;
    if (kind == OperandKind::weight) {
      if (present) request.weights[n_weights] = values[node.operands[slot]].format;
      ++n_weights;
    }
    if (!present) continue;
    if (kind == OperandKind::activation)
      request.activation = values[node.operands[slot]].activation;
    if (kind == OperandKind::cache) request.cache = values[node.operands[slot]].format;
  }
  return request;
}

namespace {

// A kernel knows one; where an input has another than the result, its sequence stays.
bool has_one_activation_kind(const Node& node, const Values& values) {
  const OperationInfo& info = operation_info(node.operation);
  std::optional<ActivationKind> kind;
  for (size_t slot = 0; slot < info.operands.size(); ++slot) {
    if (info.operands[slot].kind != OperandKind::activation) continue;
    const ActivationKind here = values[node.operands[slot]].activation;
    if (kind.value_or(here) != here) return false;
    kind = here;
  }
  return true;
}

// Takes `rule` at nodes[at] if everything that it asks for is there.
bool apply(const FusionRule& rule, std::vector<Node>& nodes, size_t at,
           const std::vector<const std::vector<Node>*>& programs, size_t program,
           const Values& values, const Device& device, RowClass row_class) {
  const size_t length = rule.sequence.size();
  if (at + length > nodes.size()) return false;
  const std::span<const Node> sequence(&nodes[at], length);
  for (size_t i = 0; i < length; ++i)
    if (sequence[i].operation != rule.sequence[i]) return false;
  if (!same_extent(sequence)) return false;
  Node fused;
  fused.operation = rule.fused;
  fused.extent = sequence[0].extent;
  std::vector<ValueId> dropped;
  if (!rule.merge(sequence, fused, dropped)) return false;
  for (const ValueId value : dropped)
    if (is_read(value, programs, program, at + length)) return false;
  if (!has_one_activation_kind(fused, values)) return false;
  if (!device.find_kernel(kernel_request(fused, values, row_class))) return false;
  fused.label = joined_label(sequence);
  nodes[at] = std::move(fused);
  nodes.erase(nodes.begin() + static_cast<ptrdiff_t>(at) + 1,
              nodes.begin() + static_cast<ptrdiff_t>(at + length));
  return true;
}

}  // namespace

void fuse(Forward& forward, const Values& values, const Device& device, RowClass row_class) {
  const std::vector<const std::vector<Node>*> programs{&forward.body, &forward.logits,
                                                       &forward.choose};
  std::vector<Node>* const mutable_programs[] = {&forward.body, &forward.logits, &forward.choose};
  for (size_t program = 0; program < programs.size(); ++program) {
    std::vector<Node>& nodes = *mutable_programs[program];
    // A fused node may begin another sequence, or end one that began before it.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t at = 0; at < nodes.size(); ++at)
        for (const FusionRule& rule : fusion_rules())
          while (apply(rule, nodes, at, programs, program, values, device, row_class))
            changed = true;
    }
  }
}

}  // namespace akunu
