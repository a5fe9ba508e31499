#include "core/table.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "core/fuse.h"

namespace akunu {
namespace {

std::string describe(const KernelRequest& request, const Device& device) {
  std::string text(operation_info(request.operation).name);
  for (const std::optional<Format>& format : request.weights)
    if (format) text += " " + std::string(format_info(*format).name);
  text += ", activation " + std::string(name_of(request.activation));
  text += ", cache " + std::string(format_info(request.cache).name);
  text += ", " + std::string(name_of(request.row_class)) + " rows, on " +
          std::string(device.backend()) + " (" + device.chip().level + ")";
  const std::string shape = device.unsupported_shape(request);
  return shape.empty() ? text : text + ": " + shape;
}

Pipeline find_kernel(const Node& node, const Values& values, const Device& device,
                     RowClass row_class) {
  const KernelRequest request = kernel_request(node, values, row_class);
  const Pipeline pipeline = device.find_kernel(request);
  if (!pipeline) {
    const bool has_blocks = format_info(request.cache).block_size > 1;
    throw UnsupportedModelError("no kernel " + describe(request, device) + " (for " + node.label +
                                ")" + (has_blocks ? ": choose kv_type f16 or f32" : ""));
  }
  return pipeline;
}

// Remembers who touched which buffer last. Whole buffers, not ranges: bindings of one buffer that
// don't overlap are rare and an unneeded wait is never wrong.
class Dependencies {
 public:
  int32_t add(int32_t command, const OperationInfo& info,
              const std::array<Binding, kMaxOperands>& operands) {
    int32_t waits_for = info.writes_rows ? command - 1 : last_rows_write_;
    for (size_t slot = 0; slot < info.operands.size(); ++slot) {
      if (!operands[slot]) continue;
      const Use& use = uses_[operands[slot].buffer.handle];
      waits_for = std::max(waits_for, use.last_write);
      if (info.operands[slot].access != Access::in) waits_for = std::max(waits_for, use.last_read);
    }
    for (size_t slot = 0; slot < info.operands.size(); ++slot) {
      if (!operands[slot]) continue;
      Use& use = uses_[operands[slot].buffer.handle];
      if (info.operands[slot].access != Access::out) use.last_read = command;
      if (info.operands[slot].access != Access::in) use.last_write = command;
    }
    if (info.writes_rows) last_rows_write_ = command;
    return waits_for;
  }

 private:
  struct Use {
    int32_t last_read = -1;
    int32_t last_write = -1;
  };
  std::unordered_map<const void*, Use> uses_;
  int32_t last_rows_write_ = -1;
};

}  // namespace

void require_kernels(const std::vector<Node>& nodes, const Values& values, const Device& device,
                     RowClass row_class) {
  for (const Node& node : nodes) find_kernel(node, values, device, row_class);
}

DispatchTable build_table(const std::vector<Node>& nodes, const Values& values,
                          const ScratchBindings& scratch, const Device& device,
                          RowClass row_class) {
  DispatchTable table;
  Dependencies dependencies;
  for (const Node& node : nodes) {
    const OperationInfo& info = operation_info(node.operation);
    Command command;
    command.operation = node.operation;
    command.extent = node.extent;
    command.params = node.params;
    command.pipeline = find_kernel(node, values, device, row_class);
    uint32_t n_weights = 0;
    for (size_t slot = 0; slot < info.operands.size(); ++slot) {
      const bool is_weight = info.operands[slot].kind == OperandKind::weight;
      const uint32_t weight = is_weight ? n_weights++ : 0;
      const ValueId id = node.operands[slot];
      if (id == kNoValue) continue;
      command.operands[slot] = values[id].bytes_per_row > 0 ? scratch[id] : values[id].binding;
      if (is_weight)
        std::copy(values[id].more_planes.begin(), values[id].more_planes.end(),
                  &command.operands[plane_slot(weight, 1)]);
    }
    const auto index = static_cast<int32_t>(table.commands.size());
    table.waits_for.push_back(dependencies.add(index, info, command.operands));
    table.commands.push_back(command);
    table.labels.push_back(node.label);
  }
  return table;
}

}  // namespace akunu
