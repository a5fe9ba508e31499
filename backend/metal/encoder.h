// Writes the commands of a pass: into a compute encoder, or once into an indirect command buffer.
// Both take the same launches, with barriers at the same places.
#pragma once

#include <Metal/Metal.hpp>
#include <array>
#include <cstdint>

#include "metal/program.h"

namespace akunu::metal {

constexpr uint32_t kSlots = 31;

// Where the passes of a submission find what changes between them.
struct PassMemory {
  const MTL::Buffer* ranges = nullptr;     // two PassRanges per pass: of rows, of head rows
  const MTL::Buffer* workspace = nullptr;  // may be null
};

inline uint64_t range_offset(uint32_t pass_index, bool over_head_rows) {
  return (2 * uint64_t{pass_index} + over_head_rows) * sizeof(PassRange);
}

// Encodes launch after launch. What is bound already is not bound again.
class StepEncoder {
 public:
  explicit StepEncoder(MTL::ComputeCommandEncoder* encoder) : encoder_(encoder) {}

  void begin_command(const CompiledCommand& command);
  void set(const BoundSlot& bound);
  void launch(const MTL::ComputePipelineState* pipeline, const Grid& grid);
  // Orders what was launched so far before what comes; nothing where nothing was.
  void barrier();
  // The pass as it was recorded.
  void execute(const RecordedPass& recorded);

 private:
  MTL::ComputeCommandEncoder* encoder_;
  const MTL::ComputePipelineState* pipeline_ = nullptr;
  std::array<BoundSlot, kSlots> bound_ = {};
  std::array<uint32_t, 4> threadgroup_bytes_ = {};
  // Masks of slots: what the command under way has bound, and what the one before had.
  uint32_t set_slots_ = 0;
  uint32_t previous_slots_ = 0;
  bool launched_ = false;  // since the last barrier
};

// The commands of one pass. `barrier` at its beginning is the caller's.
void encode_pass(StepEncoder& encoder, const CompiledProgram& program, const Pass& pass,
                 uint32_t pass_index, const PassMemory& memory);
// One command of it.
void encode_command(StepEncoder& encoder, const CompiledProgram& program, uint32_t index,
                    const Pass& pass, uint32_t pass_index, const PassMemory& memory);

// Whether passes of this shape are worth recording: one row, as every step of a chain has.
bool is_single_row(const Pass& pass);

// The recorded commands for such a pass: recorded now, unless they were before. Null where the
// system refuses, or where the program has many recordings already. The pointer is good as long as
// the program is.
const RecordedPass* record_pass(MTL::Device* device, CompiledProgram& program, const Pass& pass,
                                uint32_t pass_index, const PassMemory& memory);

}  // namespace akunu::metal
