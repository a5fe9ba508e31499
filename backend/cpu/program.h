// A compiled table: every operand a pointer, every kernel a function. And the plan of a step: the
// programs of a submission's passes, command after command, in stages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "cpu/kernel.h"
#include "cpu/slice_shares.h"

namespace akunu::cpu {

struct CompiledCommand {
  const Kernel* kernel = nullptr;
  Extent extent = Extent::rows;
  std::array<std::byte*, kMaxOperands> operands = {};
  CommandParams params;
  int32_t waits_for = -1;
};

// Pointers of a StepMemory.
struct StepPointers {
  Row* rows = nullptr;
  Span* spans = nullptr;
  const uint32_t* pages = nullptr;
  const SequenceRecord* sequences = nullptr;
  Status* statuses = nullptr;
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

// A command within a submission: what it covers.
struct PlannedCommand {
  uint64_t n_slices = 0, at_once = 1;
  const CompiledProgram* program = nullptr;
  const Pass* pass = nullptr;
  uint32_t index = 0;  // in the program
};

// The commands of a step in stages: those of a stage may overlap, and wait for the stage before.
class StepPlan {
 public:
  // Room for so many commands; without it, laying out would have to allocate.
  void reserve(size_t n_commands, uint32_t n_workers);

  // Lays out the passes' commands and counts their slices; rows and spans must be in place.
  // `apart`: every command is a stage of its own.
  void lay_out(std::span<const Pass> passes, bool apart = false);
  // Before each run of the plan.
  void rewind() { shares_.begin_step(); }
  // The part of one worker in a stage: takes slices until all of them are taken; returns how many it ran.
  uint64_t run_stage(uint32_t stage, uint32_t worker, std::byte* scratch);

  std::span<const PlannedCommand> commands() const {
    return std::span(commands_).first(n_commands_);
  }
  // The slices of each stage.
  std::span<const uint64_t> stage_slices() const {
    return std::span(stage_slices_).first(n_stages_);
  }
  // The last command of a stage: the only one with slices where they were laid out apart.
  const PlannedCommand& last_of(uint32_t stage) const { return commands_[stage_ends_[stage] - 1]; }

 private:
  void add_to_stage(const PlannedCommand& planned, bool new_stage);

  std::vector<PlannedCommand> commands_;
  size_t n_commands_ = 0;
  SliceShares shares_;
  std::vector<uint32_t> stage_ends_;  // the command behind each stage's last
  std::vector<uint64_t> stage_slices_;
  size_t n_stages_ = 0;
};

}  // namespace akunu::cpu
