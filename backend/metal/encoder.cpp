#include "metal/encoder.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "core/error.h"
#include "metal/objects.h"

namespace akunu::metal {
namespace {

// Shapes of passes that a program keeps recordings of: a single row at another place of the
// submission, with or without logits.
constexpr size_t kMostRecordings = 8;

MTL::Size size_of(const std::array<uint32_t, 3>& size) {
  return MTL::Size::Make(size[0], size[1], size[2]);
}

void check_grid(const Launch& launch, const MTL::ComputePipelineState* pipeline, const Grid& grid) {
  for (const uint32_t n : grid.threadgroups)
    if (n == 0) throw DeviceError("the kernel " + launch.function + " was to run on nothing");
  const uint64_t threads = uint64_t{grid.threads[0]} * grid.threads[1] * grid.threads[2];
  const uint64_t most = pipeline->maxTotalThreadsPerThreadgroup();
  if (threads == 0 || threads > most)
    throw DeviceError("the kernel " + launch.function + " was to run with " +
                      std::to_string(threads) +
                      " threads per threadgroup; this GPU can run it with " + std::to_string(most));
}

// Collects the commands of a pass for an indirect command buffer, where each has bindings of its
// own and says itself whether it waits.
class Recorder {
 public:
  explicit Recorder(MTL::IndirectCommandBuffer* commands) : commands_(commands) {}

  void begin_command(const CompiledCommand&) { slots_ = {}; }
  void set(const BoundSlot& bound) { slots_[bound.slot] = bound; }
  void barrier() { waits_ = n_ > 0; }
  void launch(const MTL::ComputePipelineState* pipeline, const Grid& grid) {
    MTL::IndirectComputeCommand* command = commands_->indirectComputeCommand(n_++);
    command->setComputePipelineState(pipeline);
    for (const BoundSlot& bound : slots_)
      if (bound.buffer != nullptr) command->setKernelBuffer(bound.buffer, bound.offset, bound.slot);
    for (uint32_t i = 0; i < grid.threadgroup_bytes.size(); ++i)
      if (grid.threadgroup_bytes[i] > 0)
        command->setThreadgroupMemoryLength(grid.threadgroup_bytes[i], i);
    if (std::exchange(waits_, false)) command->setBarrier();
    command->concurrentDispatchThreadgroups(size_of(grid.threadgroups), size_of(grid.threads));
  }
  uint64_t n_commands() const { return n_; }

 private:
  MTL::IndirectCommandBuffer* commands_;
  std::array<BoundSlot, kSlots> slots_ = {};
  bool waits_ = false;
  uint64_t n_ = 0;
};

// Writes one command to an encoder or a recorder.
template <class Target>
void write_command(Target& target, const CompiledProgram& program, uint32_t index, const Pass& pass,
                   uint32_t pass_index, const PassMemory& memory) {
  const CompiledCommand& command = program.commands[index];
  const Scope scope{command.params.data(), command.over_head_rows ? pass.n_head_rows : pass.n_rows,
                    pass.n_spans};
  if (scope.n_rows == 0) return;
  target.begin_command(command);
  for (const BoundSlot& bound : command.slots) target.set(bound);
  target.set({kSlotPass, memory.ranges, range_offset(pass_index, command.over_head_rows)});
  if (command.has_workspace)
    target.set({kSlotWorkspace, memory.workspace, command.workspace_offset});
  bool is_first = true;
  for (const CompiledLaunch& compiled : command.launches) {
    const Launch& launch = *compiled.launch;
    if (scope.n_rows < launch.min_rows || scope.n_rows > launch.max_rows) continue;
    const Grid grid = launch.grid(scope);
    check_grid(launch, compiled.pipeline, grid);
    if (!std::exchange(is_first, false) && launch.waits) target.barrier();
    target.launch(compiled.pipeline, grid);
  }
  if (is_first)
    throw DeviceError("no launch of " + program.labels[index] + " serves " +
                      std::to_string(scope.n_rows) + " rows");
}

template <class Target>
void write_pass(Target& target, const CompiledProgram& program, const Pass& pass,
                uint32_t pass_index, const PassMemory& memory) {
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    if (program.commands[i].begins_stage) target.barrier();
    write_command(target, program, i, pass, pass_index, memory);
  }
}

NS::SharedPtr<MTL::IndirectCommandBuffer> new_commands(MTL::Device* device, uint64_t n) {
  const auto descriptor = NS::TransferPtr(MTL::IndirectCommandBufferDescriptor::alloc()->init());
  descriptor->setCommandTypes(MTL::IndirectCommandTypeConcurrentDispatch);
  descriptor->setInheritBuffers(false);
  descriptor->setInheritPipelineState(false);
  descriptor->setMaxKernelBufferBindCount(kSlots);
  descriptor->setMaxKernelThreadgroupMemoryBindCount(Grid{}.threadgroup_bytes.size());
  return NS::TransferPtr(
      device->newIndirectCommandBuffer(descriptor.get(), n, MTL::ResourceStorageModeShared));
}

}  // namespace

void StepEncoder::begin_command(const CompiledCommand& command) {
  encoder_->insertDebugSignpost(command.label.get());
  previous_slots_ |= std::exchange(set_slots_, 0);
}

void StepEncoder::set(const BoundSlot& bound) {
  BoundSlot& before = bound_[bound.slot];
  set_slots_ |= 1u << bound.slot;
  if (before.buffer == bound.buffer) {
    if (before.offset != bound.offset) encoder_->setBufferOffset(bound.offset, bound.slot);
  } else {
    encoder_->setBuffer(bound.buffer, bound.offset, bound.slot);
  }
  before = bound;
}

void StepEncoder::launch(const MTL::ComputePipelineState* pipeline, const Grid& grid) {
  // What commands before left in slots that this one leaves free would look bound to a tool, and
  // to a kernel that reads too much.
  for (uint32_t left = std::exchange(previous_slots_, 0) & ~set_slots_; left != 0;
       left &= left - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(left));
    encoder_->setBuffer(nullptr, 0, slot);
    bound_[slot] = {};
  }
  if (std::exchange(pipeline_, pipeline) != pipeline) encoder_->setComputePipelineState(pipeline);
  for (uint32_t i = 0; i < grid.threadgroup_bytes.size(); ++i)
    if (std::exchange(threadgroup_bytes_[i], grid.threadgroup_bytes[i]) !=
        grid.threadgroup_bytes[i])
      encoder_->setThreadgroupMemoryLength(grid.threadgroup_bytes[i], i);
  encoder_->dispatchThreadgroups(size_of(grid.threadgroups), size_of(grid.threads));
  launched_ = true;
}

void StepEncoder::barrier() {
  if (std::exchange(launched_, false)) encoder_->memoryBarrier(MTL::BarrierScopeBuffers);
}

void StepEncoder::execute(const RecordedPass& recorded) {
  if (recorded.n_commands == 0) return;
  encoder_->executeCommandsInBuffer(recorded.commands.get(),
                                    NS::Range::Make(0, recorded.n_commands));
  launched_ = true;
}

void encode_pass(StepEncoder& encoder, const CompiledProgram& program, const Pass& pass,
                 uint32_t pass_index, const PassMemory& memory) {
  write_pass(encoder, program, pass, pass_index, memory);
}

void encode_command(StepEncoder& encoder, const CompiledProgram& program, uint32_t index,
                    const Pass& pass, uint32_t pass_index, const PassMemory& memory) {
  write_command(encoder, program, index, pass, pass_index, memory);
}

bool is_single_row(const Pass& pass) { return pass.n_rows <= 1 && pass.n_head_rows <= 1; }

const RecordedPass* record_pass(MTL::Device* device, CompiledProgram& program, const Pass& pass,
                                uint32_t pass_index, const PassMemory& memory) {
  for (const RecordedPass& known : program.recorded)
    if (known.pass_index == pass_index && known.n_rows == pass.n_rows &&
        known.n_head_rows == pass.n_head_rows && known.n_spans == pass.n_spans)
      return &known;
  program.recorded.reserve(kMostRecordings);  // what was given out stays where it is
  if (program.recorded.size() == kMostRecordings) return nullptr;
  NS::SharedPtr<MTL::IndirectCommandBuffer> commands =
      new_commands(device, std::max<uint64_t>(1, program.n_launches));
  if (!commands) return nullptr;
  commands->setLabel(make_string("recorded pass").get());
  Recorder recorder(commands.get());
  write_pass(recorder, program, pass, pass_index, memory);
  program.recorded.push_back({pass_index, pass.n_rows, pass.n_head_rows, pass.n_spans,
                              recorder.n_commands(), std::move(commands)});
  return &program.recorded.back();
}

}  // namespace akunu::metal
