// A compiled table: every operand a pointer, every kernel a function. And the plan of a step: the
// programs of a submission's passes, command after command.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "cpu/kernel.h"

namespace akunu::cpu {

struct CompiledCommand {
  const Kernel* kernel = nullptr;
  Extent extent;
  std::array<std::byte*, kMaxOperands> operands = {};
  std::array<std::byte, 64> params = {};
  int32_t waits_for = -1;
};

// Pointers of a StepMemory.
struct StepPointers {
  Row* rows = nullptr;
  Span* spans = nullptr;
  const uint32_t* pages = nullptr;
  const SequenceRecord* sequences = nullptr;
  Status* status = nullptr;
};

struct CompiledProgram {
  std::vector<CompiledCommand> commands;
  std::vector<std::string> labels;
  StepMemory memory;
  StepPointers pointers;
  std::vector<const void*> buffers;  // handles that commands use, sorted
  uint64_t scratch_bytes = 0;        // the most that a command asks for per worker

  bool uses(const void* handle) const;
};

// Checks the table (throws ArgumentError, naming the command) and resolves its pointers.
CompiledProgram compile_program(DispatchTable table, const StepMemory& memory);

// A command within a submission: what it covers, and how far the workers are.
struct alignas(64) PlannedCommand {
  // Workers take slices from here; on a line of its own, with what they read anyway.
  std::atomic<uint64_t> next_slice{0};
  uint64_t n_slices = 0;
  uint64_t chunk = 1;  // slices taken at once
  const CompiledProgram* program = nullptr;
  const Pass* pass = nullptr;
  uint32_t index = 0;    // in the program
  bool barrier = false;  // wait for all workers before this command
  Status status = {};    // this command's own, so that the label of an error is never a guess
};

// Lays out the passes' commands and counts their slices; rows and spans must be in place. Returns
// how many of `plan` it filled; there must be room.
size_t plan_step(std::span<const Pass> passes, uint32_t n_workers, std::span<PlannedCommand> plan);

// Before each run of a plan.
void rewind_step(std::span<PlannedCommand> plan);

// The part of one worker in a step. `barrier()` waits for all workers.
template <class Barrier>
void run_step(std::span<PlannedCommand> plan, std::byte* scratch, Barrier&& barrier);

Call make_call(PlannedCommand& planned);

template <class Barrier>
void run_step(std::span<PlannedCommand> plan, std::byte* scratch, Barrier&& barrier) {
  for (PlannedCommand& planned : plan) {
    if (planned.barrier) barrier();
    if (planned.n_slices == 0) continue;
    const Kernel& kernel = *planned.program->commands[planned.index].kernel;
    // Relaxed: what a slice reads was published by a barrier or by the start of the job.
    uint64_t begin = planned.next_slice.fetch_add(planned.chunk, std::memory_order_relaxed);
    if (begin >= planned.n_slices) continue;
    const Call call = make_call(planned);
    while (begin < planned.n_slices) {
      kernel.run(call, begin, std::min(planned.n_slices, begin + planned.chunk), scratch);
      begin = planned.next_slice.fetch_add(planned.chunk, std::memory_order_relaxed);
    }
  }
}

}  // namespace akunu::cpu
