#include "core/fuse.h"

#include <algorithm>
#include <cassert>
#include <optional>

namespace akunu {
namespace {

using Nodes = std::vector<Node>;

std::span<const OperandInfo> operands_of(const Node& node) {
  return operation_info(node.operation).operands;
}

bool writes(const Node& node, ValueId value) {
  const std::span<const OperandInfo> operands = operands_of(node);
  for (size_t slot = 0; slot < operands.size(); ++slot)
    if (node.operands[slot] == value && operands[slot].access != Access::in) return true;
  return false;
}

bool reads(const Node& node, ValueId value) {
  const std::span<const OperandInfo> operands = operands_of(node);
  for (size_t slot = 0; slot < operands.size(); ++slot)
    if (node.operands[slot] == value && operands[slot].access != Access::out) return true;
  return false;
}

// Calls visit(value, is written) for every operand that is there.
void for_each_operand(const Node& node, const auto& visit) {
  const std::span<const OperandInfo> operands = operands_of(node);
  for (size_t slot = 0; slot < operands.size(); ++slot)
    if (node.operands[slot] != kNoValue)
      visit(node.operands[slot], operands[slot].access != Access::in);
}

// One rule at one program: finds nodes that match it, and takes it.
class Matcher {
 public:
  Matcher(const FusionRule& rule, Forward& forward, Nodes& nodes, const Values& values,
          const Device& device, RowClass row_class)
      : rule_(rule),
        forward_(forward),
        nodes_(nodes),
        values_(values),
        device_(device),
        row_class_(row_class),
        places_(rule.nodes.size(), kNowhere) {}

  // Takes the rule with nodes_[at] as its first node, if that is possible.
  bool apply(size_t at) {
    if (nodes_[at].operation != rule_.nodes[0]) return false;
    places_[0] = at;
    return match_rest();
  }

 private:
  static constexpr size_t kNowhere = SIZE_MAX;

  // Finds a place for every node that has none, and takes the first match that can be taken.
  bool match_rest() {
    if (std::find(places_.begin(), places_.end(), kNowhere) == places_.end()) return take();
    for (const FusionLink& link : rule_.links) {
      const bool forwards = places_[link.to] == kNowhere;
      const uint8_t known = forwards ? link.from : link.to;
      const uint8_t wanted = forwards ? link.to : link.from;
      if (places_[known] == kNowhere || places_[wanted] != kNowhere) continue;
      return try_candidates(link, known, wanted);
    }
    assert(false && "a rule's links connect all of its nodes");
    return false;
  }

  // From the known end of a link on, as far as its value stays what it is.
  bool try_candidates(const FusionLink& link, uint8_t known, uint8_t wanted) {
    const Node& start = nodes_[places_[known]];
    const std::vector<ValueId> linked = values_of(link, known, start);
    for (const ValueId value : linked) {
      if (value == kNoValue) continue;
      for (size_t at = places_[known] + 1; at < nodes_.size(); ++at) {
        if (try_at(wanted, at)) return true;
        if (writes(nodes_[at], value)) break;
      }
      for (size_t at = places_[known]; at-- > 0;) {
        if (try_at(wanted, at)) return true;
        if (writes(nodes_[at], value)) break;
      }
    }
    return false;
  }

  std::vector<ValueId> values_of(const FusionLink& link, uint8_t end, const Node& node) const {
    if (end == link.to) return {node.operands[link.to_slot]};
    if (link.from_slot != kAnyWritten) return {node.operands[link.from_slot]};
    std::vector<ValueId> written;
    for_each_operand(node, [&](ValueId value, bool is_written) {
      if (is_written) written.push_back(value);
    });
    return written;
  }

  bool try_at(uint8_t wanted, size_t at) {
    if (nodes_[at].operation != rule_.nodes[wanted] ||
        nodes_[at].extent != nodes_[places_[0]].extent ||
        std::find(places_.begin(), places_.end(), at) != places_.end())
      return false;
    places_[wanted] = at;
    if (links_hold() && match_rest()) return true;
    places_[wanted] = kNowhere;
    return false;
  }

  // Whether every link between nodes that have a place is one of this program.
  bool links_hold() const {
    return std::all_of(rule_.links.begin(), rule_.links.end(), [&](const FusionLink& link) {
      const size_t from = places_[link.from], to = places_[link.to];
      return from == kNowhere || to == kNowhere || holds(link, from, to);
    });
  }

  bool holds(const FusionLink& link, size_t from, size_t to) const {
    const ValueId value = nodes_[to].operands[link.to_slot];
    if (value == kNoValue) return false;
    const bool made = link.from_slot == kAnyWritten
                          ? writes(nodes_[from], value)
                          : operands_of(nodes_[from])[link.from_slot].access != Access::in;
    if (link.from_slot != kAnyWritten && nodes_[from].operands[link.from_slot] != value)
      return false;
    if (made && from > to) return false;
    for (size_t at = std::min(from, to) + 1; at < std::max(from, to); ++at)
      if (writes(nodes_[at], value)) return false;
    // Two that read it: the earlier one leaves it as it was.
    return made || !writes(nodes_[std::min(from, to)], value);
  }

  // Puts the fused node in the place of those that match.
  bool take() {
    std::vector<size_t> order = places_;  // as they stand in the list
    std::sort(order.begin(), order.end());
    std::vector<Node> matched;
    for (const size_t at : places_) matched.push_back(nodes_[at]);
    Node fused;
    fused.operation = rule_.fused;
    fused.extent = matched[0].extent;
    if (!rule_.merge(matched, fused)) return false;
    if (!keeps_what_others_read(fused, order) || !has_one_activation_kind(fused)) return false;
    const std::optional<size_t> place = common_place(order);
    if (!place) return false;
    if (!device_.find_kernel(kernel_request(fused, values_, row_class_))) return false;
    fused.label = joined_label(order);
    nodes_[*place] = std::move(fused);
    for (auto at = order.rbegin(); at != order.rend(); ++at)
      if (*at != *place) nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(*at));
    return true;
  }

  bool is_matched(size_t at) const {
    return std::find(places_.begin(), places_.end(), at) != places_.end();
  }

  // Whether nothing needs what the nodes write and the fused one does not: they hand that to each other only.
  bool keeps_what_others_read(const Node& fused, const std::vector<size_t>& order) const {
    for (const size_t at : order) {
      bool kept = true;
      for_each_operand(nodes_[at], [&](ValueId value, bool is_written) {
        if (is_written && !writes(fused, value) && is_needed(value, at)) kept = false;
      });
      if (!kept) return false;
    }
    return true;
  }

  // Whether anything but the matched nodes sees what nodes_[at] leaves in `value`.
  bool is_needed(ValueId value, size_t at) const {
    if (values_[value].bytes_per_row == 0 || value == forward_.logits_value) return true;
    bool reached = false;
    for (const Nodes* program : forward_.programs()) {
      const bool own = program == &nodes_;
      reached = reached || own;
      if (!reached) continue;
      for (size_t i = own ? at + 1 : 0; i < program->size(); ++i) {
        if (own && is_matched(i)) continue;
        if (reads((*program)[i], value)) return true;
        if (writes((*program)[i], value)) return false;  // anew
      }
    }
    return false;
  }

  // A kernel knows one; where an input has another than the result, its nodes stay.
  bool has_one_activation_kind(const Node& node) const {
    const std::span<const OperandInfo> operands = operands_of(node);
    std::optional<ActivationKind> kind;
    for (size_t slot = 0; slot < operands.size(); ++slot) {
      if (operands[slot].kind != OperandKind::activation) continue;
      const ActivationKind here = values_[node.operands[slot]].activation;
      if (kind.value_or(here) != here) return false;
      kind = here;
    }
    return true;
  }

  // The place of one of the nodes to which all of them can move: the last one's if possible.
  std::optional<size_t> common_place(const std::vector<size_t>& order) const {
    for (auto place = order.rbegin(); place != order.rend(); ++place)
      if (std::all_of(order.begin(), order.end(),
                      [&](size_t from) { return can_move(from, *place); }))
        return *place;
    return std::nullopt;
  }

  bool can_move(size_t from, size_t to) const {
    for (size_t at = std::min(from, to) + 1; at < std::max(from, to); ++at)
      if (!is_matched(at) && depend(nodes_[from], nodes_[at])) return false;
    return true;
  }

  // Whether the order of two nodes matters.
  bool depend(const Node& a, const Node& b) const {
    if (operation_info(a.operation).writes_rows || operation_info(b.operation).writes_rows)
      return true;
    bool found = false;
    for_each_operand(a, [&](ValueId of_a, bool a_writes) {
      for_each_operand(b, [&](ValueId of_b, bool b_writes) {
        found = found || ((a_writes || b_writes) && share_memory(of_a, of_b));
      });
    });
    return found;
  }

  bool share_memory(ValueId a, ValueId b) const {
    const void* const memory = values_[a].binding.buffer.handle;
    return a == b || (memory != nullptr && memory == values_[b].binding.buffer.handle);
  }

  // "layer 0 q", "layer 0 k" -> "layer 0 q, k"
  std::string joined_label(const std::vector<size_t>& order) const {
    const std::string& first = nodes_[order[0]].label;
    std::string label = first;
    for (const size_t at : std::span(order).subspan(1)) {
      const std::string& other = nodes_[at].label;
      size_t common = 0;
      while (common < first.size() && common < other.size() && first[common] == other[common])
        ++common;
      while (common > 0 && other[common - 1] != ' ') --common;
      label += ", " + other.substr(common);
    }
    return label;
  }

  const FusionRule& rule_;
  const Forward& forward_;
  Nodes& nodes_;
  const Values& values_;
  const Device& device_;
  const RowClass row_class_;
  std::vector<size_t> places_;  // of the rule's nodes in nodes_
};

}  // namespace

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

void fuse(Forward& forward, const Values& values, const Device& device, RowClass row_class) {
  for (Nodes* nodes : forward.programs()) {
    // A fused node may be part of another pattern, also of one whose first node stands before it.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t at = 0; at < nodes->size(); ++at)
        for (const FusionRule& rule : fusion_rules())
          while (at < nodes->size() &&
                 Matcher(rule, forward, *nodes, values, device, row_class).apply(at))
            changed = true;
    }
  }
}

}  // namespace akunu
