#include "inference/fused_forwards.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cache/kv_cache.h"
#include "cache/scratch.h"
#include "core/fuse.h"
#include "core/image_rows.h"
#include "core/table.h"

namespace akunu {
namespace {

// A matmul's params, if it is one.
std::optional<ExpertMatmulParams> stack_of(const Node& node) {
  if (node.operation == Operation::expert_matmul) return node.get<ExpertMatmulParams>();
  if (node.operation != Operation::matmul) return std::nullopt;
  const auto& params = node.get<MatmulParams>();
  return ExpertMatmulParams{params.n, params.k, 1, 1, 1, {}};
}

// What made `made` makes it once more, as `again`. A sum, which went on from what was there, is copied.
Node made_again(const Node& writer, ValueId made, ValueId again, uint32_t k) {
  const std::span<const OperandInfo> operands = operation_info(writer.operation).operands;
  Node node = writer;
  for (size_t i = 0; i < operands.size(); ++i)
    if (writer.operands[i] == made && operands[i].access == Access::inout) {
      node = Node{};
      node.operation = Operation::activate;
      node.operands[0] = made;
      node.operands[1] = again;
      node.set(ActivateParams{k, kActivationNone, 0, 0});
      node.label = "observed sum";
      return node;
    }
  std::ranges::replace(node.operands, made, again);
  return node;
}

// What made the input, in the kind that the device multiplies, makes it once more in floats.
std::vector<ObservedPart> cut_at_matmuls(const std::vector<Node>& body, Values& values) {
  std::vector<ObservedPart> parts;
  std::vector<Node> nodes;
  std::map<ValueId, Node> writers;  // the last one of each value
  for (const Node& node : body) {
    if (const std::optional<ExpertMatmulParams> stack = stack_of(node)) {
      const uint64_t n = uint64_t{stack->n_inputs} * stack->k;
      const ValueId input = values.add({.name = "observed " + std::to_string(n),
                                        .binding = {},
                                        .bytes_per_row = n * sizeof(float),
                                        .per = Extent::rows,
                                        .activation = ActivationKind::f32});
      nodes.push_back(made_again(writers.at(node.operands[0]), node.operands[0], input, stack->k));
      const bool is_stack = node.operation == Operation::expert_matmul;
      parts.push_back({std::move(nodes), node.operands[1], input,
                       is_stack ? node.operands[2] : kNoValue, *stack});
      nodes.clear();
    }
    nodes.push_back(node);
    const std::span<const OperandInfo> operands = operation_info(node.operation).operands;
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].access != Access::in) writers[node.operands[i]] = node;
  }
  return parts;
}

}  // namespace

FusedForwards::FusedForwards(const ArchDescriptor& arch, const TensorMap& tensors,
                             const std::vector<Binding>& inverse_frequencies,
                             const ForwardMemory& memory, const Device& device, bool is_observed,
                             const AdapterTargets& adapters) {
  const auto build = [&](Forward& fused, RowClass row_class, const AdapterTargets* targets) {
    fused = build_forward(arch, tensors, inverse_frequencies, memory, device, row_class, values,
                          targets);
    if (!is_observed) fuse(fused, values, device, row_class);
    if (arch.images && arch.images->is.sees_later_rows && row_class == RowClass::many)
      fused.image_rows = image_rows_of(fused.body, values, arch.images->n_tokens());
    for (const std::vector<Node>* nodes : fused.programs())
      require_kernels(*nodes, values, device, row_class);
  };
  for (const RowClass row_class : kRowClasses) {
    build(by_class[static_cast<size_t>(row_class)], row_class, nullptr);
    if (!adapters.empty()) build(adapted[static_cast<size_t>(row_class)], row_class, &adapters);
  }
  if (is_observed)
    observed = cut_at_matmuls(by_class[static_cast<size_t>(RowClass::many)].body, values);
  used.resize(values.size());
  const auto use = [&](const std::vector<Node>& nodes) {
    for (const Node& node : nodes)
      for (const ValueId id : node.operands)
        if (id != kNoValue) used[id] = true;
  };
  for (const auto* forwards : {&by_class, &adapted})
    for (const Forward& fused : *forwards)
      for (const std::vector<Node>* nodes : fused.programs()) use(*nodes);
  for (const ObservedPart& part : observed) use(part.nodes);
}

uint64_t FusedForwards::scratch_bytes(const StepSizes& sizes) const {
  return Scratch::bytes(values, used, sizes.max_scratch_rows, sizes.max_head_rows);
}

ForwardMemory memory_without_buffers(const ArchDescriptor& arch,
                                     std::span<const GroupShape> groups) {
  ForwardMemory memory;
  memory.layers = layers_without_memory(arch, groups);
  memory.states = states_without_memory(groups);
  memory.cross = cross_without_memory(groups);
  memory.page_table_bases.assign(groups.size(), 0);
  return memory;
}

}  // namespace akunu
