// Rewrites a forward pass: operations that feed each other -> fused operation. A rule is a pattern of
// the data flow, not of the order in the list: it is taken where the device has that kernel for these
// formats and this shape, where nothing else reads what the nodes hand to each other, and where they
// can be moved to one place past all that stands between them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/forward.h"

namespace akunu {

// Two operands of two nodes of a rule that are the same numbers: what node `from` leaves in its slot
// `from_slot` (or reads there, where it does not write it) is what node `to` finds in `to_slot`.
struct FusionLink {
  uint8_t from;
  uint8_t from_slot;
  uint8_t to;
  uint8_t to_slot;
};
constexpr uint8_t kAnyWritten = 0xff;  // as from_slot: one of those that `from` writes

struct FusionRule {
  Operation fused;
  std::vector<Operation> nodes;
  std::vector<FusionLink> links;  // they connect all nodes
  // Fills operands and params of `fused` from the nodes, which are linked as the rule says; false
  // where their params do not go together.
  bool (*merge)(std::span<const Node> nodes, Node& fused);
};

// In the order in which they are tried for each first node.
std::span<const FusionRule> fusion_rules();

// Rewrites the three programs for rows of one class.
void fuse(Forward& forward, const Values& values, const Device& device, RowClass row_class);

// The kernel that a node needs; see KernelRequest.
KernelRequest kernel_request(const Node& node, const Values& values, RowClass row_class);

}  // namespace akunu
