// A compiled table: every operand an address, every launch a function and its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/modules.h"
#include "metal/kernel.h"

namespace akunu::cuda {

// Kernels, and what a launch of each takes, are those of every GPU: the table says them once.
using metal::Grid;
using metal::Kernel;
using metal::Launch;
using metal::Scope;

struct CompiledLaunch {
  const Launch* launch = nullptr;
  Function function = nullptr;
  Arguments arguments;  // without the pass range and the workspace
};

// A weight in the host's memory. For many rows the command first copies it to the GPU, since each tile of rows reads
// the whole weight again.
struct StagedWeight {
  uint32_t slot = 0;
  DevicePointer at = 0;  // in the host's memory
  uint64_t bytes = 0;
  uint64_t offset = 0;  // of the copy, among those of its command
};

struct CompiledCommand {
  bool over_head_rows = false;
  CommandParams params;
  bool has_workspace = false;
  std::vector<StagedWeight> staged_weights;
  std::vector<CompiledLaunch> launches;
};

struct CompiledProgram {
  std::vector<CompiledCommand> commands;
  std::vector<std::string> labels;
  StepMemory memory;
  std::vector<const void*> handles;  // of Buffers that commands use, sorted
  uint64_t workspace_bytes = 0;
  uint64_t staged_bytes = 0;  // of the command that stages most

  bool uses(const void* handle) const;
};

inline CompiledProgram& program_of(Program program) {
  // The device's own; the contract hands it around as const.
  return *static_cast<CompiledProgram*>(const_cast<void*>(program.handle));
}

// Checks the table (throws ArgumentError, naming the command; UnsupportedModelError for a function
// that the build lacks) and resolves it.
CompiledProgram compile_program(DispatchTable table, const StepMemory& memory, Modules& modules);

}  // namespace akunu::cuda
