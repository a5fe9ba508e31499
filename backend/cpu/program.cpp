#include "cpu/program.h"

#include <algorithm>

#include "core/device_checks.h"

namespace akunu::cpu {
namespace {

template <class T>
T* pointer_to(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.contents);
}

CompiledCommand compile_command(const Command& command, int32_t waits_for) {
  CompiledCommand compiled;
  compiled.kernel = static_cast<const Kernel*>(command.pipeline.handle);
  compiled.extent = command.extent;
  compiled.params = command.params;
  compiled.waits_for = waits_for;
  for (size_t slot = 0; slot < kMaxOperands; ++slot)
    if (const Binding& binding = command.operands[slot])
      compiled.operands[slot] = binding.buffer.contents + binding.offset;
  return compiled;
}

Call base_call(const CompiledProgram& program, const CompiledCommand& command) {
  Call call = {};
  call.kernel = command.kernel;
  std::copy(command.operands.begin(), command.operands.end(), call.operands);
  call.params = command.params.data();
  call.rows = program.pointers.rows;
  call.spans = program.pointers.spans;
  call.pages = program.pointers.pages;
  call.sequences = program.pointers.sequences;
  call.statuses = program.pointers.statuses;
  return call;
}

Call make_call(PlannedCommand& planned) {
  const CompiledCommand& command = planned.program->commands[planned.index];
  const Pass& pass = *planned.pass;
  const bool head = command.extent == Extent::head_rows;
  Call call = base_call(*planned.program, command);
  call.first_row = head ? pass.first_head_row : pass.first_row;
  call.n_rows = head ? pass.n_head_rows : pass.n_rows;
  call.first_span = pass.first_span;
  call.n_spans = pass.n_spans;
  return call;
}

}  // namespace

bool CompiledProgram::uses(const void* handle) const {
  return std::binary_search(buffers.begin(), buffers.end(), handle);
}

CompiledProgram compile_program(DispatchTable table, const StepMemory& memory) {
  check_table(table);
  CompiledProgram program;
  program.labels = std::move(table.labels);
  program.memory = memory;
  program.pointers = {pointer_to<Row>(memory.rows), pointer_to<Span>(memory.spans),
                      pointer_to<const uint32_t>(memory.pages),
                      pointer_to<const SequenceRecord>(memory.sequences),
                      pointer_to<Status>(memory.statuses)};
  for (const Buffer& buffer :
       {memory.rows, memory.spans, memory.pages, memory.sequences, memory.statuses})
    if (buffer.contents != nullptr) program.buffers.push_back(buffer.handle);
  for (size_t i = 0; i < table.commands.size(); ++i) {
    const Command& command = table.commands[i];
    program.commands.push_back(compile_command(command, table.waits_for[i]));
    for (const Binding& binding : command.operands)
      if (binding) program.buffers.push_back(binding.buffer.handle);
    const CompiledCommand& compiled = program.commands.back();
    if (compiled.kernel->scratch_bytes != nullptr)
      program.scratch_bytes = std::max(
          program.scratch_bytes, compiled.kernel->scratch_bytes(base_call(program, compiled)));
  }
  std::sort(program.buffers.begin(), program.buffers.end());
  program.buffers.erase(std::unique(program.buffers.begin(), program.buffers.end()),
                        program.buffers.end());
  return program;
}

void StepPlan::reserve(size_t n_commands, uint32_t n_workers) {
  if (n_commands > commands_.size()) commands_ = std::vector<PlannedCommand>(n_commands);
  shares_.reserve(commands_.size(), n_workers);
  stage_ends_.resize(commands_.size());
  stage_slices_.resize(commands_.size());
  n_commands_ = n_stages_ = 0;  // what is under way is laid out anew
}

void StepPlan::lay_out(std::span<const Pass> passes, bool apart) {
  n_commands_ = n_stages_ = 0;
  for (const Pass& pass : passes) {
    const auto& program = *static_cast<const CompiledProgram*>(pass.program.handle);
    int32_t first_of_stage = 0;
    for (uint32_t i = 0; i < program.commands.size(); ++i) {
      PlannedCommand& planned = commands_[n_commands_++];
      planned.program = &program;
      planned.pass = &pass;
      planned.index = i;
      // Passes share scratch memory, so each begins a stage.
      const bool new_stage = apart || i == 0 || program.commands[i].waits_for >= first_of_stage;
      if (new_stage) first_of_stage = static_cast<int32_t>(i);
      const Call call = make_call(planned);
      const Kernel& kernel = *program.commands[i].kernel;
      planned.n_slices = call.n_rows == 0 ? 0 : kernel.slices(call);
      planned.at_once = kernel.at_once == nullptr ? 1 : kernel.at_once(call);
      add_to_stage(planned, new_stage);
    }
  }
  if (n_stages_ > 0 && stage_slices_[n_stages_ - 1] == 0) --n_stages_;  // nothing in it to do
}

void StepPlan::add_to_stage(const PlannedCommand& planned, bool new_stage) {
  // A stage without slices is none: what follows takes its place.
  if (n_stages_ == 0 || (new_stage && stage_slices_[n_stages_ - 1] > 0))
    stage_slices_[n_stages_++] = 0;
  stage_slices_[n_stages_ - 1] += planned.n_slices;
  stage_ends_[n_stages_ - 1] = static_cast<uint32_t>(n_commands_);
}

uint64_t StepPlan::run_stage(uint32_t stage, uint32_t worker, std::byte* scratch) {
  const uint32_t first = stage == 0 ? 0 : stage_ends_[stage - 1];
  uint64_t n_run = 0;
  for (uint32_t i = first; i < stage_ends_[stage]; ++i) {
    PlannedCommand& planned = commands_[i];
    const auto take = [&] { return shares_.take(i, worker, planned.n_slices, planned.at_once); };
    Portion portion = take();
    if (portion.begin == portion.end) continue;
    const Kernel& kernel = *planned.program->commands[planned.index].kernel;
    const Call call = make_call(planned);
    for (; portion.begin < portion.end; portion = take()) {
      kernel.run(call, portion.begin, portion.end, scratch);
      n_run += portion.end - portion.begin;
    }
  }
  return n_run;
}

}  // namespace akunu::cpu
