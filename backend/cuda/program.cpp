#include "cuda/program.h"

#include <algorithm>

#include "core/device_checks.h"
#include "core/error.h"

namespace akunu::cuda {
namespace {

constexpr uint64_t kWeightAlignment = 256;

// Whether a command reads a few rows of its table, and not all of it.
bool looks_up_rows(Operation operation) {
  return operation == Operation::embed || operation == Operation::add_embedding;
}

class Compiler {
 public:
  Compiler(CompiledProgram& program, Modules& modules) : program_(program), modules_(modules) {}

  void add(const Command& command) {
    const auto& kernel = *static_cast<const Kernel*>(command.pipeline.handle);
    CompiledCommand& compiled = program_.commands.emplace_back();
    compiled.over_head_rows = command.extent == Extent::head_rows;
    compiled.params = command.params;
    Arguments arguments;
    const uint32_t bound_slots = bind(arguments, command);
    arguments.params = command.params;
    if (!looks_up_rows(command.operation)) stage(compiled, command);
    if (kernel.workspace_bytes) {
      const auto max_rows = static_cast<uint32_t>(program_.memory.rows.size / sizeof(Row));
      const uint64_t bytes = kernel.workspace_bytes(command.params.data(), max_rows);
      compiled.has_workspace = bytes > 0;
      // Commands follow one another, so one piece of memory serves them all.
      program_.workspace_bytes = std::max(program_.workspace_bytes, bytes);
    }
    for (const Launch& launch : kernel.launches) {
      CompiledLaunch& one = compiled.launches.emplace_back(
          CompiledLaunch{&launch, modules_.get(launch.function), arguments});
      one.arguments.constants[metal::kConstantBoundSlots] = bound_slots;
      for (const metal::FunctionConstant& constant : launch.constants)
        one.arguments.constants[constant.index] = constant.value;
    }
  }

 private:
  // Returns the operand slots that are bound, as a mask.
  uint32_t bind(Arguments& arguments, const Command& command) {
    uint32_t mask = 0;
    for (uint32_t slot = 0; slot < kMaxOperands; ++slot) {
      if (!command.operands[slot]) continue;
      bind_buffer(arguments, slot, command.operands[slot].buffer, command.operands[slot].offset);
      mask |= 1u << slot;
    }
    bind_buffer(arguments, kSlotRows, program_.memory.rows, 0);
    bind_buffer(arguments, kSlotPages, program_.memory.pages, 0);
    bind_buffer(arguments, kSlotSequences, program_.memory.sequences, 0);
    bind_buffer(arguments, kSlotStatuses, program_.memory.statuses, 0);
    bind_buffer(arguments, kSlotSpans, program_.memory.spans, 0);
    return mask;
  }

  void stage(CompiledCommand& compiled, const Command& command) {
    uint64_t end = 0;
    for (uint32_t slot = 0; slot < kMaxOperands; ++slot) {
      const Binding& operand = command.operands[slot];
      if (!operand || !in_host_memory(operand.buffer)) continue;
      compiled.staged_weights.push_back({slot, address_of(operand.buffer) + operand.offset,
                                         operand.buffer.size - operand.offset, end});
      // Kernels read whole pieces, and so more than there is.
      end += (operand.buffer.size + 2 * kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
    }
    program_.staged_bytes = std::max(program_.staged_bytes, end);
  }

  void bind_buffer(Arguments& arguments, uint32_t slot, const Buffer& buffer, uint64_t offset) {
    if (buffer.handle == nullptr) return;
    arguments.slots[slot] = address_of(buffer) + offset;
    program_.handles.push_back(buffer.handle);
  }

  CompiledProgram& program_;
  Modules& modules_;
};

}  // namespace

bool CompiledProgram::uses(const void* handle) const {
  return std::binary_search(handles.begin(), handles.end(), handle);
}

CompiledProgram compile_program(DispatchTable table, const StepMemory& memory, Modules& modules) {
  check_table(table);
  CompiledProgram program;
  program.labels = std::move(table.labels);
  program.memory = memory;
  program.commands.reserve(table.commands.size());
  Compiler compiler(program, modules);
  for (const Command& command : table.commands) compiler.add(command);
  std::sort(program.handles.begin(), program.handles.end());
  program.handles.erase(std::unique(program.handles.begin(), program.handles.end()),
                        program.handles.end());
  return program;
}

}  // namespace akunu::cuda
