// A compiled table: every operand a buffer and an offset, every launch a pipeline.
#pragma once

#include <Metal/Metal.hpp>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device.h"
#include "metal/kernel.h"
#include "metal/memory.h"
#include "metal/pipelines.h"

namespace akunu::metal {

// Submissions that may be under way or remembered at once.
constexpr uint64_t kCapacity = 8;

struct BoundSlot {
  uint32_t slot = 0;
  const MTL::Buffer* buffer = nullptr;
  uint64_t offset = 0;
};

struct CompiledLaunch {
  const Launch* launch = nullptr;
  const MTL::ComputePipelineState* pipeline = nullptr;
};

struct CompiledCommand {
  bool over_head_rows = false;
  // Waits for a command of the stage that is under way. Commands of a stage overlap.
  bool begins_stage = false;
  CommandParams params;
  std::vector<BoundSlot> slots;  // all but the pass range and the workspace
  bool has_workspace = false;
  uint64_t workspace_offset = 0;
  std::vector<CompiledLaunch> launches;
  NS::SharedPtr<NS::String> label;
};

// Commands of a pass as the GPU keeps them, for passes of one shape.
struct RecordedPass {
  uint32_t pass_index = 0;  // in the submission: says where its range lies
  uint32_t n_rows = 0, n_head_rows = 0, n_spans = 0;
  uint64_t n_commands = 0;
  NS::SharedPtr<MTL::IndirectCommandBuffer> commands;
};

struct CompiledProgram {
  std::vector<CompiledCommand> commands;
  std::vector<std::string> labels;
  StepMemory memory;
  std::vector<const void*> handles;           // of Buffers that commands use, sorted
  std::vector<const MTL::Buffer*> resources;  // likewise of Metal, without the workspace
  uint64_t workspace_bytes = 0;
  uint64_t n_launches = 0;  // all that there are
  OwnedBlock constants;     // the parameters of every command
  std::vector<RecordedPass> recorded;

  bool uses(const void* handle) const;
};

inline CompiledProgram& program_of(Program program) {
  // The device's own; the contract hands it around as const.
  return *static_cast<CompiledProgram*>(const_cast<void*>(program.handle));
}

// Checks the table (throws ArgumentError, naming the command; UnsupportedModelError for a function
// that the library lacks) and resolves it.
CompiledProgram compile_program(DispatchTable table, const StepMemory& memory, Pipelines& pipelines,
                                Memory& device_memory);

}  // namespace akunu::metal
