// The Device interface on an Apple GPU. metal_device.h says what it promises.
//
// 1. What it does. Buffers, weights and copies (memory.h), kernels and programs (pipelines.h,
//    program.h); a submission becomes one command buffer: its updates (`encode_head`), its steps
//    (`encode_steps`), what it reports (`encode_tail`).
// 2. What bounds it. Encoding, where steps are short: a generated token is some hundred dispatches.
// 3. What is done about it. Steps of one row are recorded once and replayed by the GPU (`record`,
//    Encoding); several submissions are in flight.
// 4. Where to change it. Which kernel an operation gets: kernel_table_*.cpp. How a pass is encoded:
//    encoder.cpp, program.cpp. What a failed command buffer says: failure.cpp.
#include "metal/metal_device.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "core/device_checks.h"
#include "core/error.h"
#include "core/home_process.h"
#include "metal/chip.h"
#include "metal/encoder.h"
#include "metal/failure.h"
#include "metal/kernel.h"
#include "metal/memory.h"
#include "metal/objects.h"
#include "metal/pipelines.h"
#include "metal/program.h"
#include "metal/submissions.h"
#include "metal/system.h"

namespace akunu {
namespace metal {
namespace {

using Clock = std::chrono::steady_clock;

// A wait checks this often whether the GPU has failed.
constexpr std::chrono::milliseconds kLookAfter(100);

constexpr std::string_view kEncodingVariable = "AKUNU_METAL_ENCODING";

// Whether steps of one row are recorded once and replayed by the GPU, and why.
struct Encoding {
  bool indirect = false;
  std::string reason;
};

Encoding choose_encoding(uint32_t family) {
  const char* set = std::getenv(kEncodingVariable.data());
  const std::string asked = set == nullptr ? "" : set;
  if (!asked.empty() && asked != "plain" && asked != "indirect")
    throw ArgumentError(std::string(kEncodingVariable) + " must be plain or indirect, not \"" +
                        asked + "\"");
  if (!asked.empty())
    return {asked == "indirect",
            asked + " encoding because " + std::string(kEncodingVariable) + " says so"};
  return family > 0 ? Encoding{true, "steps of one row are indirect command buffers"}
                    : Encoding{false, "plain encoding: no indirect command buffers here"};
}

// 7 for M1, 8 for M2, 9 for M3 and M4, 10 for M5; 0 for an unknown GPU. A later GPU counts as the newest
// known one: each family has what earlier ones have.
uint32_t family_of(MTL::Device* device) {
  constexpr std::array kFamilies{MTL::GPUFamilyApple10, MTL::GPUFamilyApple9, MTL::GPUFamilyApple8,
                                 MTL::GPUFamilyApple7};
  for (const MTL::GPUFamily family : kFamilies)
    if (device->supportsFamily(family)) return static_cast<uint32_t>(family - 1000);
  return 0;
}

// Ends an encoder, also when encoding throws: a command buffer must not end with one open.
template <class Encoder>
class OpenEncoder {
 public:
  OpenEncoder(Encoder* encoder, const std::string& label) : encoder_(encoder) {
    encoder_->setLabel(make_string(label).get());
  }
  ~OpenEncoder() { encoder_->endEncoding(); }
  OpenEncoder(const OpenEncoder&) = delete;
  OpenEncoder& operator=(const OpenEncoder&) = delete;
  Encoder* get() const { return encoder_; }

 private:
  Encoder* encoder_;
};

struct CachedKernel {
  KernelRequest request;
  Kernel kernel;
};

class MetalDevice final : public Device {
 public:
  explicit MetalDevice(const DeviceOptions& options) : state_(open(options)) {
    const AutoreleasePool pool;
    const System& system = state_->system;
    chip_ = describe_chip({to_string(system.device->name()), system.gpu_cores,
                           system.device->recommendedMaxWorkingSetSize()});
    chip_.level = system.level;
    chip_.reason = (state_->family > 0 ? "GPU family Apple" + std::to_string(state_->family)
                                       : std::string("unknown GPU family")) +
                   ", " + state_->encoding.reason;
  }

  // In a child after a fork nothing of it can be given back: the system's part of it is not there.
  ~MetalDevice() override {
    if (forked())
      static_cast<void>(state_.release());
    else
      finish_all();
  }

  std::string_view backend() const override { return backend_name(); }
  const ChipConfig& chip() const override { return chip_; }

  Buffer allocate(uint64_t bytes, std::string_view label) override {
    refuse_in_child();
    const AutoreleasePool pool;
    return state_->memory.allocate(bytes, label);
  }

  void release(const Buffer& buffer) override {
    if (forked()) return;
    state_->submissions.forget(buffer);
    assert(!state_->submissions.uses(buffer));
    state_->memory.release(buffer);
  }

  MemoryLeft memory_left() const override {
    return {.memory = forked() ? 0 : state_->memory.available(), .address_space = std::nullopt};
  }
  std::vector<MemoryUse> memory_use() const override { return state_->memory.uses(); }
  MemoryUse use_of(const Buffer& buffer) const override { return state_->memory.use_of(buffer); }

  void write(const Binding& destination, std::span<const std::byte> bytes) override {
    refuse_in_child();
    check_copy("write", destination, bytes.size());
    if (state_->submissions.uses(destination.buffer))
      throw DeviceError("write of a buffer that a submission in flight uses; wait for it first");
    if (allocation_of(destination.buffer).mapped)
      throw ArgumentError("a mapped weight cannot be written");
    if (!bytes.empty())
      std::memcpy(destination.buffer.contents + destination.offset, bytes.data(), bytes.size());
  }

  void read(const Binding& source, std::span<std::byte> bytes) const override {
    refuse_in_child();
    check_copy("read", source, bytes.size());
    if (!bytes.empty())
      std::memcpy(bytes.data(), source.buffer.contents + source.offset, bytes.size());
  }

  void copy(std::span<const Copy> copies) override {
    refuse();
    check_copies(copies);
    for (const Copy& each : copies)
      if (allocation_of(each.to.buffer).mapped)
        throw ArgumentError("a mapped weight cannot be written");
    if (!state_->submissions.idle()) return state_->submissions.add(copies);
    for (const Copy& each : copies)  // memory is the host's too
      if (each.bytes > 0)
        std::memcpy(each.to.buffer.contents + each.to.offset,
                    each.from.buffer.contents + each.from.offset, each.bytes);
  }

  Weight import_weight(const WeightSource& source) override {
    refuse_in_child();
    check_weight(source);
    const AutoreleasePool pool;
    return import_planes(
        source, [&](const WeightPart& part) { return state_->memory.import(part); },
        [&](const Buffer& buffer) { release(buffer); });
  }

  void release_weight(const Weight& weight) override {
    for (const Binding& plane : weight.planes)
      if (plane) release(plane.buffer);
  }

  // These GPUs multiply float as fast as half numbers, and floats do not overflow.
  ActivationKind activation_kind(Format, RowClass) const override { return ActivationKind::f32; }
  uint64_t activation_row_bytes(ActivationKind kind, uint64_t k) const override {
    switch (kind) {
      case ActivationKind::f32:
        return k * 4;
      case ActivationKind::f16:
      case ActivationKind::bf16:
        return k * 2;
      case ActivationKind::bf16_pair:
        return k * 4;
      case ActivationKind::q8_32:
        return k + k / 32 * 8;
      case ActivationKind::q16_32:
        return (k + 31) / 32 * 68;
    }
    __builtin_unreachable();
  }

  Pipeline find_kernel(const KernelRequest& request) const override {
    for (const CachedKernel& known : kernels_)
      if (known.request == request) return {&known.kernel};
    std::optional<Kernel> kernel = metal::find_kernel(request);
    if (!kernel) return {};
    return {&kernels_.emplace_back(CachedKernel{request, std::move(*kernel)}).kernel};
  }

  std::string unsupported_shape(const KernelRequest& request) const override {
    return metal::unsupported_shape(request);
  }

  void set_limits(const SubmissionLimits& limits) override {
    refuse();
    const AutoreleasePool pool;
    state_->submissions.set_limits(limits);
  }

  Program compile(DispatchTable table, const StepMemory& memory) override {
    refuse();
    const AutoreleasePool pool;
    auto program = std::make_unique<CompiledProgram>(
        compile_program(std::move(table), memory, state_->pipelines, state_->memory));
    if (program->workspace_bytes > state_->workspace.size())
      grow_workspace(program->workspace_bytes);
    state_->programs.push_back(std::move(program));
    return {state_->programs.back().get()};
  }

  void release_program(Program program) override {
    if (forked()) return;
    assert(program.handle == nullptr || !state_->submissions.uses(program_of(program)));
    std::erase_if(state_->programs,
                  [&](const auto& owned) { return owned.get() == program.handle; });
  }

  Ticket submit(const Replay& replay) override {
    refuse();
    const AutoreleasePool pool;
    Submission& submission = state_->submissions.stage(replay);
    const Ticket ticket = state_->submissions.n_submitted() + 1;
    const NS::SharedPtr<MTL::CommandBuffer> commands = new_commands(ticket);
    if (ticket > 1) commands->encodeWait(state_->event.get(), ticket - 1);
    encode_head(commands.get(), submission);
    encode_steps(commands.get(), submission);
    encode_tail(commands.get(), submission, ticket);
    commands->commit();
    submission.commands = commands;
    return state_->submissions.commit();
  }

  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override {
    refuse_in_child();
    Submissions& submissions = state_->submissions;
    const Submission& wanted = submissions.at(ticket);
    if (ticket >= failed_ticket_) refuse();
    const AutoreleasePool pool;
    // Milliseconds of a caller who means "for ever" would overflow the clock's nanoseconds.
    const Clock::time_point deadline =
        Clock::now() + std::min<std::chrono::milliseconds>(timeout, std::chrono::years(1));
    while (submissions.n_done() < ticket)
      if (!finish_front(deadline)) break;
    return wanted.outcome;
  }

  std::vector<CommandTime> profile(const Replay& replay) override {
    refuse();
    if (!state_->submissions.idle())
      throw DeviceError("a profile needs the device alone; wait for what is in flight first");
    std::vector<CommandTime> times;
    Submission& submission = state_->submissions.stage(replay);
    const Ticket ticket = state_->submissions.n_submitted() + 1;
    run_alone(ticket, [&](MTL::CommandBuffer* commands) { encode_head(commands, submission); });
    for (uint32_t step = 0; step < submission.steps; ++step)
      for (uint32_t pass = 0; pass < submission.passes.size(); ++pass)
        time_pass(submission, pass, ticket, times);
    run_alone(ticket,
              [&](MTL::CommandBuffer* commands) { encode_tail(commands, submission, ticket); });
    state_->submissions.commit();
    state_->submissions.collect(submission, ticket);
    state_->submissions.finish_front();
    return times;
  }

 private:
  struct State {
    explicit State(System opened)
        : system(std::move(opened)),
          family(family_of(system.device.get())),
          encoding(choose_encoding(family)),
          queue(NS::TransferPtr(system.device->newCommandQueue())),
          event(NS::TransferPtr(system.device->newSharedEvent())),
          memory(system.device.get()),
          pipelines(system.device.get(), system.library_path, encoding.indirect),
          submissions(memory) {
      if (!queue || !event) throw DeviceError("the GPU gives no command queue");
    }

    System system;
    uint32_t family;
    Encoding encoding;
    NS::SharedPtr<MTL::CommandQueue> queue;
    NS::SharedPtr<MTL::SharedEvent> event;  // its value is the last ticket that is done
    Memory memory;
    Pipelines pipelines;
    Submissions submissions;
    OwnedBlock workspace;  // of whatever command runs: passes and stages follow each other
    std::vector<std::unique_ptr<CompiledProgram>> programs;
  };

  static std::unique_ptr<State> open(const DeviceOptions& options) {
    const AutoreleasePool pool;
    return std::make_unique<State>(open_system(options.isa));
  }

  bool forked() const { return home_.is_another(); }

  void refuse_in_child() const {
    home_.refuse_elsewhere(
        "the process was forked after the model was loaded; load it again in the child");
  }

  // Throws where nothing can be computed any more: in a forked child, and after a failed command.
  void refuse() const {
    refuse_in_child();
    if (!failure_.empty()) throw DeviceError("an earlier command failed: " + failure_);
  }

  // Recorded passes are bound to the old workspace, and submissions in flight use it.
  void grow_workspace(uint64_t bytes) {
    finish_all();
    for (const auto& program : state_->programs) program->recorded.clear();
    state_->workspace = OwnedBlock(state_->memory, bytes, "workspace");
  }

  NS::SharedPtr<MTL::CommandBuffer> new_commands(Ticket ticket) {
    const auto descriptor = NS::TransferPtr(MTL::CommandBufferDescriptor::alloc()->init());
    // Everything that commands use lives until they are done, so nobody else needs to hold it.
    descriptor->setRetainedReferences(false);
    descriptor->setErrorOptions(MTL::CommandBufferErrorOptionEncoderExecutionStatus);
    MTL::CommandBuffer* given = state_->queue->commandBuffer(descriptor.get());
    if (given == nullptr)
      throw DeviceError("the GPU gives no command buffer; load the model again");
    NS::SharedPtr<MTL::CommandBuffer> commands = NS::RetainPtr(given);
    commands->setLabel(make_string("submission " + std::to_string(ticket)).get());
    return commands;
  }

  void encode_head(MTL::CommandBuffer* commands, const Submission& submission) {
    if (submission.moves.empty() && submission.copies.empty() && submission.passes.empty()) return;
    const OpenEncoder encoder(commands->blitCommandEncoder(), "head");
    state_->submissions.encode_head(encoder.get(), submission);
  }

  void encode_tail(MTL::CommandBuffer* commands, const Submission& submission, Ticket ticket) {
    if (!submission.passes.empty()) {
      const OpenEncoder encoder(commands->blitCommandEncoder(), "tail");
      state_->submissions.encode_tail(encoder.get(), submission, ticket);
    }
    commands->encodeSignalEvent(state_->event.get(), ticket);
  }

  PassMemory pass_memory() const {
    return {state_->submissions.ranges(), state_->workspace.buffer()};
  }

  // Every step is the same commands: what differs from step to step is in the rows in memory.
  void encode_steps(MTL::CommandBuffer* commands, const Submission& submission) {
    if (submission.passes.empty()) return;
    const std::vector<const RecordedPass*> recorded = record(submission);
    const OpenEncoder open(commands->computeCommandEncoder(MTL::DispatchTypeConcurrent), "steps");
    if (!recorded.empty()) use_resources(open.get(), submission);
    StepEncoder encoder(open.get());
    for (uint32_t step = 0; step < submission.steps; ++step)
      for (uint32_t i = 0; i < submission.passes.size(); ++i) {
        const Pass& pass = submission.passes[i];
        encoder.barrier();  // passes share scratch memory
        if (recorded.empty())
          encode_pass(encoder, program_of(pass.program), pass, i, pass_memory());
        else
          encoder.execute(*recorded[i]);
      }
  }

  // The recording of each pass; none at all where one of them cannot be recorded.
  std::vector<const RecordedPass*> record(const Submission& submission) {
    std::vector<const RecordedPass*> recorded;
    const std::vector<Pass>& passes = submission.passes;
    if (!state_->encoding.indirect || !std::all_of(passes.begin(), passes.end(), is_single_row))
      return recorded;
    for (uint32_t i = 0; i < passes.size(); ++i) {
      recorded.push_back(record_pass(state_->system.device.get(), program_of(passes[i].program),
                                     passes[i], i, pass_memory()));
      if (recorded.back() == nullptr) return {};
    }
    return recorded;
  }

  // Metal does not find out by itself which buffers recorded passes use.
  void use_resources(MTL::ComputeCommandEncoder* encoder, const Submission& submission) {
    const auto use = [&](const MTL::Resource* resource) {
      if (resource != nullptr)
        encoder->useResource(resource, MTL::ResourceUsageRead | MTL::ResourceUsageWrite);
    };
    use(pass_memory().ranges);
    use(pass_memory().workspace);
    for (const Pass& pass : submission.passes)
      for (const MTL::Buffer* buffer : program_of(pass.program).resources) use(buffer);
  }

  // Waits for the oldest submission; false: the deadline came first.
  bool finish_front(Clock::time_point deadline) {
    const Ticket ticket = state_->submissions.n_done() + 1;
    Submission& submission = state_->submissions.front();
    while (!wait_for_event(ticket, deadline)) {
      if (submission.commands->status() == MTL::CommandBufferStatusError) break;
      if (Clock::now() >= deadline) return false;
    }
    // The last command is done, or has failed; this says which.
    submission.commands->waitUntilCompleted();
    if (submission.commands->status() == MTL::CommandBufferStatusError)
      fail(*submission.commands.get());
    state_->submissions.collect(submission, ticket);
    state_->submissions.finish_front();
    return true;
  }

  bool wait_for_event(Ticket ticket, Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const auto wanted = std::clamp(left, std::chrono::milliseconds(0), kLookAfter);
    return state_->event->waitUntilSignaledValue(ticket, static_cast<uint64_t>(wanted.count()));
  }

  [[noreturn]] void fail(const MTL::CommandBuffer& commands) {
    failure_ = describe_failure(&commands);
    failed_ticket_ = state_->submissions.n_done() + 1;
    finish_all();
    throw DeviceError(failure_);
  }

  // Waits for whatever is in flight. A failed submission never signals its event, which the next one
  // waits for: so it is signalled here.
  void finish_all() {
    Submissions& submissions = state_->submissions;
    while (!submissions.idle()) {
      const Ticket ticket = submissions.n_done() + 1;
      submissions.front().commands->waitUntilCompleted();
      if (state_->event->signaledValue() < ticket) state_->event->setSignaledValue(ticket);
      submissions.collect(submissions.front(), ticket);
      submissions.finish_front();
    }
  }

  // Runs a command buffer of its own and returns the seconds that it took.
  template <class Encode>
  double run_alone(Ticket ticket, const Encode& encode) {
    const AutoreleasePool pool;
    const NS::SharedPtr<MTL::CommandBuffer> commands = new_commands(ticket);
    encode(commands.get());
    commands->commit();
    commands->waitUntilCompleted();
    if (commands->status() == MTL::CommandBufferStatusError) fail(*commands.get());
    return commands->GPUEndTime() - commands->GPUStartTime();
  }

  void time_pass(const Submission& submission, uint32_t pass_index, Ticket ticket,
                 std::vector<CommandTime>& times) {
    const Pass& pass = submission.passes[pass_index];
    const CompiledProgram& program = program_of(pass.program);
    for (uint32_t i = 0; i < program.commands.size(); ++i) {
      if ((program.commands[i].over_head_rows ? pass.n_head_rows : pass.n_rows) == 0) continue;
      const double seconds = run_alone(ticket, [&](MTL::CommandBuffer* commands) {
        const OpenEncoder open(commands->computeCommandEncoder(MTL::DispatchTypeConcurrent),
                               program.labels[i]);
        StepEncoder encoder(open.get());
        encode_command(encoder, program, i, pass, pass_index, pass_memory());
      });
      times.push_back({program.labels[i], seconds});
    }
  }

  const HomeProcess home_;
  ChipConfig chip_;
  mutable std::deque<CachedKernel> kernels_;  // each that was asked for; pipelines point to them
  std::unique_ptr<State> state_;
  std::string failure_;  // of the GPU: nothing runs any more
  Ticket failed_ticket_ = UINT64_MAX;
};

}  // namespace

Roofline measure_roofline(const DeviceOptions&) {
  throw DeviceError(
      "the limits of a GPU are not measured yet; those of the CPU are: device=\"cpu\"");
}

}  // namespace metal

std::shared_ptr<Device> create_metal_device(const DeviceOptions& options) {
  return std::make_shared<metal::MetalDevice>(options);
}

}  // namespace akunu
