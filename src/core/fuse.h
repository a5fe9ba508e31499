// Rewrites a forward pass: operation sequence -> fused operation, each rule taken where the device
// has that kernel for these formats and nothing else reads what the sequence left in between.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/forward.h"

namespace akunu {

struct FusionRule {
  Operation fused;
  std::vector<Operation> sequence;
  // Fills `fused` (operands, params) from the sequence's nodes and names the values that the fused
  // operation no longer writes; false where the nodes are not linked as the rule needs.
  bool (*merge)(std::span<const Node> sequence, Node& fused, std::vector<ValueId>& dropped);
};

// In the order in which they are tried at each place.
std::span<const FusionRule> fusion_rules();

// Rewrites the three programs for rows of one class.
void fuse(Forward& forward, const Values& values, const Device& device, RowClass row_class);

// The kernel that a node needs; see KernelRequest.
KernelRequest kernel_request(const Node& node, const Values& values, RowClass row_class);

}  // namespace akunu
