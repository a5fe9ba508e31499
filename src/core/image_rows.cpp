// Cuts the body in front of each attention.
//
// 1. What it does. A row's attention reads keys and values of all rows: they are complete where a part ends. The nodes
//    are those of `body`, after it was fused, so a row has the bits that it has there. What a part leaves for later
//    ones lies in values that no other program writes.
// 2. What is left out. The last layer's attention and all nodes after it, which make no keys or values. A row of an
//    image that has an output runs in a step, as any row of a prompt, once these are there.
#include "core/image_rows.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "core/operation.h"

namespace akunu {
namespace {

bool reads_cache(const Node& node) {
  return std::ranges::any_of(operation_info(node.operation).operands, [](const OperandInfo& each) {
    return each.kind == OperandKind::cache && each.access == Access::in;
  });
}

// Scratch values that a later part reads, and what takes their place.
std::map<ValueId, ValueId> kept_values(const std::vector<std::vector<Node>>& parts, Values& values,
                                       uint32_t most_rows) {
  std::map<ValueId, ValueId> kept;
  std::map<ValueId, size_t> written;  // by which part last
  for (size_t part = 0; part < parts.size(); ++part)
    for (const Node& node : parts[part]) {
      const std::span<const OperandInfo> operands = operation_info(node.operation).operands;
      for (size_t slot = 0; slot < operands.size(); ++slot) {
        const ValueId id = node.operands[slot];
        if (id == kNoValue || values[id].bytes_per_row == 0) continue;
        if (operands[slot].access != Access::out && written.at(id) != part && !kept.contains(id)) {
          Value value = values[id];
          value.name = "image " + value.name;
          value.most_rows = most_rows;
          kept.emplace(id, values.add(std::move(value)));
        }
        if (operands[slot].access != Access::in) written[id] = part;
      }
    }
  return kept;
}

}  // namespace

std::vector<std::vector<Node>> image_rows_of(const std::vector<Node>& body, Values& values,
                                             uint32_t most_rows) {
  std::vector<std::vector<Node>> parts(1);
  for (const Node& node : body) {
    if (reads_cache(node)) parts.emplace_back();
    parts.back().push_back(node);
  }
  parts.pop_back();
  const std::map<ValueId, ValueId> kept = kept_values(parts, values, most_rows);
  for (std::vector<Node>& part : parts)
    for (Node& node : part)
      for (ValueId& id : node.operands)
        if (const auto found = kept.find(id); found != kept.end()) id = found->second;
  return parts;
}

}  // namespace akunu
