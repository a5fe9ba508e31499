#include "metal/program.h"

#include <algorithm>
#include <cstring>

#include "core/device_checks.h"
#include "core/error.h"
#include "metal/objects.h"

namespace akunu::metal {
namespace {

// Workspaces of a stage lie side by side, each at a multiple of this.
constexpr uint64_t kWorkspaceAlignment = 256;
constexpr uint64_t kParamsBytes = kMaxParamsBytes;

uint64_t aligned(uint64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

class Compiler {
 public:
  Compiler(CompiledProgram& program, Pipelines& pipelines)
      : program_(program), pipelines_(pipelines) {}

  void add(const Command& command, int32_t waits_for) {
    const auto index = static_cast<uint32_t>(program_.commands.size());
    const auto& kernel = *static_cast<const Kernel*>(command.pipeline.handle);
    CompiledCommand& compiled = program_.commands.emplace_back();
    compiled.over_head_rows = command.extent == Extent::head_rows;
    compiled.params = command.params;
    compiled.label = make_string(program_.labels[index]);
    compiled.begins_stage = index == 0 || waits_for >= first_of_stage_;
    if (compiled.begins_stage) {
      first_of_stage_ = static_cast<int32_t>(index);
      workspace_end_ = 0;
    }
    const uint32_t bound_slots = bind(compiled, command, index);
    add_workspace(compiled, kernel, command);
    for (const Launch& launch : kernel.launches)
      compiled.launches.push_back({&launch, pipelines_.get(launch, bound_slots)});
    program_.n_launches += kernel.launches.size();
  }

 private:
  // Returns the operand slots that are bound, as a mask.
  uint32_t bind(CompiledCommand& compiled, const Command& command, uint32_t index) {
    uint32_t mask = 0;
    for (uint32_t slot = 0; slot < kMaxOperands; ++slot) {
      if (!command.operands[slot]) continue;
      bind_buffer(compiled, slot, command.operands[slot].buffer, command.operands[slot].offset);
      mask |= 1u << slot;
    }
    compiled.slots.push_back({kSlotParams, program_.constants.buffer(), index * kParamsBytes});
    bind_buffer(compiled, kSlotRows, program_.memory.rows, 0);
    bind_buffer(compiled, kSlotPages, program_.memory.pages, 0);
    bind_buffer(compiled, kSlotSequences, program_.memory.sequences, 0);
    bind_buffer(compiled, kSlotStatuses, program_.memory.statuses, 0);
    bind_buffer(compiled, kSlotSpans, program_.memory.spans, 0);
    return mask;
  }

  void bind_buffer(CompiledCommand& compiled, uint32_t slot, const Buffer& buffer,
                   uint64_t offset) {
    if (buffer.handle == nullptr) return;
    const Allocation& allocation = allocation_of(buffer);
    compiled.slots.push_back({slot, allocation.buffer, allocation.offset + offset});
    program_.handles.push_back(buffer.handle);
    program_.resources.push_back(allocation.buffer);
  }

  void add_workspace(CompiledCommand& compiled, const Kernel& kernel, const Command& command) {
    if (!kernel.workspace_bytes) return;
    const auto max_rows = static_cast<uint32_t>(program_.memory.rows.size / sizeof(Row));
    const uint64_t bytes = kernel.workspace_bytes(command.params.data(), max_rows);
    if (bytes == 0) return;
    compiled.has_workspace = true;
    compiled.workspace_offset = workspace_end_;
    workspace_end_ += aligned(bytes);
    program_.workspace_bytes = std::max(program_.workspace_bytes, workspace_end_);
  }

  CompiledProgram& program_;
  Pipelines& pipelines_;
  int32_t first_of_stage_ = 0;
  uint64_t workspace_end_ = 0;  // of the stage that is under way
};

template <class T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

bool CompiledProgram::uses(const void* handle) const {
  return std::binary_search(handles.begin(), handles.end(), handle);
}

CompiledProgram compile_program(DispatchTable table, const StepMemory& memory, Pipelines& pipelines,
                                Memory& device_memory) {
  check_table(table);
  constexpr std::string_view kLabel = "programs";
  const uint64_t n = table.commands.size();
  CompiledProgram program;
  program.labels = std::move(table.labels);
  program.memory = memory;
  program.commands.reserve(n);
  program.constants = OwnedBlock(device_memory, n * kParamsBytes, kLabel);
  program.resources = {program.constants.buffer()};
  Compiler compiler(program, pipelines);
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(program.constants.contents() + i * kParamsBytes, table.commands[i].params.data(),
                kParamsBytes);
    compiler.add(table.commands[i], table.waits_for[i]);
  }
  sort_unique(program.handles);
  sort_unique(program.resources);
  return program;
}

}  // namespace akunu::metal
