// The Device interface on an NVIDIA GPU. cuda_device.h says what it promises.
//
// 1. What it does. Buffers, weights and copies (memory.h), kernels (modules.h, kernel_table.h) and
//    programs (program.h). A submission is put into one stream of the driver: its updates, its steps
//    (steps.h), what it reports (submissions.h); an event at its end says that it is done.
// 2. What bounds it. The kernels; where steps are short, their launches.
// 3. What is done about it. A step is captured once as a CUDA graph and replayed with one launch
//    (steps.h); several submissions are in flight.
// 4. Where to change it. Which kernel an operation gets: kernel_table.cpp. How a step is launched:
//    steps.cpp. What the driver is called for: driver.h.
#include "cuda/cuda_device.h"

#include <algorithm>
#include <cassert>
#include <deque>

#include "core/device_checks.h"
#include "core/error.h"
#include "core/home_process.h"
#include "cuda/chip.h"
#include "cuda/gpu.h"
#include "cuda/kernel_table.h"
#include "cuda/kernel_table_warpgroups.h"
#include "cuda/memory.h"
#include "cuda/modules.h"
#include "cuda/program.h"
#include "cuda/steps.h"
#include "cuda/stopwatch.h"
#include "cuda/submissions.h"

namespace akunu {
namespace cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kLevel = "sm";
// The longest wait for submissions in flight, when a device ends or its memory changes. Submissions last
// tenths of a second: after this time the GPU counts as lost.
constexpr std::chrono::seconds kLongest(60);

struct CachedKernel {
  KernelRequest request;
  Kernel kernel;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const DeviceOptions& options) {
    if (!options.isa.empty() && options.isa != kLevel)
      throw ArgumentError("level \"" + options.isa + "\" is not one of " + std::string(kLevel));
    if (kernel_images().empty())
      throw DeviceError(
          "cuda is for NVIDIA GPUs, and akunu's kernels for them are not installed: where there is "
          "such a GPU, pip install akunu-cuda, or from the source: pip install ./packaging/cuda");
    state_ = std::make_unique<State>(options.gpu);
    const Gpu& gpu = state_->gpu;
    chip_ = describe_chip(
        {gpu.name(), static_cast<uint32_t>(gpu.attribute(Attribute::multiprocessors)),
         static_cast<uint32_t>(gpu.attribute(Attribute::clock_kilohertz)), gpu.memory_bytes(),
         static_cast<uint32_t>(gpu.attribute(Attribute::memory_clock_kilohertz)),
         static_cast<uint32_t>(gpu.attribute(Attribute::memory_bus_bits))});
    choice_ = {static_cast<uint32_t>(gpu.attribute(Attribute::shared_bytes_of_block)),
               static_cast<uint32_t>(gpu.attribute(Attribute::multiprocessors)),
               rows_are_streamed(gpu.capability(), kernel_architectures()),
               prompts_on_warpgroups(gpu.capability(), kernel_architectures())};
    chip_.level = kLevel;
    chip_.reason = "compute capability " + std::to_string(gpu.capability() / 10) + "." +
                   std::to_string(gpu.capability() % 10) + ", kernels for " +
                   std::string(kernel_architectures()) +
                   (choice_.rows_are_streamed ? ", rows are streamed" : "") +
                   (choice_.prompts_on_warpgroups ? ", prompts on warpgroups" : "");
  }

  // In a child after a fork nothing of it can be given back: the driver's part of it is not there.
  ~CudaDevice() override {
    if (forked()) {
      static_cast<void>(state_.release());
      return;
    }
    if (state_ == nullptr) return;
    // Nothing on a lost GPU ever ends: no wait for it.
    if (failure_.empty()) wait_for_all(Clock::now() + kLongest);
    state_->end();
  }

  std::string_view backend() const override { return "cuda"; }
  const ChipConfig& chip() const override { return chip_; }

  Buffer allocate(uint64_t bytes, std::string_view label) override {
    refuse_in_child();
    const Current current(state_->gpu);
    return state_->memory.allocate(bytes, label);
  }

  void release(const Buffer& buffer) override {
    if (forked() || buffer.handle == nullptr) return;
    state_->submissions.forget(buffer);
    assert(!state_->submissions.uses(buffer));
    const Current current(state_->gpu);
    state_->memory.release(buffer);
  }

  bool has_own_memory() const override { return true; }

  MemoryLeft memory_left() const override {
    if (forked()) return {.memory = 0, .address_space = std::nullopt};
    const Current current(state_->gpu);
    return {.memory = state_->memory.available(), .address_space = std::nullopt};
  }
  std::vector<MemoryUse> memory_use() const override { return state_->memory.uses(); }
  MemoryUse use_of(const Buffer& buffer) const override { return state_->memory.use_of(buffer); }

  void write(const Binding& destination, std::span<const std::byte> bytes) override {
    refuse_in_child();
    check_copy("write", destination, bytes.size());
    if (state_->submissions.uses(destination.buffer))
      throw DeviceError("write of a buffer that a submission in flight uses; wait for it first");
    if (bytes.empty()) return;
    const Current current(state_->gpu);
    state_->memory.write(destination.buffer, destination.offset, bytes);
  }

  void read(const Binding& source, std::span<std::byte> bytes) const override {
    refuse_in_child();
    check_copy("read", source, bytes.size());
    if (bytes.empty()) return;
    const Current current(state_->gpu);
    state_->memory.read(source.buffer, source.offset, bytes);
  }

  // In the same stream as submissions: after the earlier ones and before the later ones.
  void copy(std::span<const Copy> copies) override {
    refuse();
    check_copies(copies);
    const Current current(state_->gpu);
    const Driver& driver = state_->gpu.driver();
    for (const Copy& each : copies)
      if (each.bytes > 0)
        driver.check(driver.copy_within(address_of(each.to.buffer) + each.to.offset,
                                        address_of(each.from.buffer) + each.from.offset, each.bytes,
                                        state_->gpu.steps()),
                     "a copy within the GPU");
    if (state_->submissions.idle())
      state_->finish_steps("a copy within the GPU");
    else
      state_->submissions.add(copies);
  }

  Weight import_weight(const WeightSource& source) override {
    refuse_in_child();
    check_weight(source);
    const Current current(state_->gpu);
    return import_planes(
        source,
        [&](const WeightPart& part) {
          return source.in_host_memory ? state_->memory.import_to_host(part)
                                       : state_->memory.import(part);
        },
        [&](const Buffer& buffer) { release(buffer); });
  }

  void release_weight(const Weight& weight) override {
    for (const Binding& plane : weight.planes)
      if (plane) release(plane.buffer);
  }

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
      if (known.request == request) return {&known.kernel, known.kernel.most_rows()};
    std::optional<Kernel> kernel = cuda::find_kernel(request, choice_);
    if (!kernel) return {};
    const Kernel& found = kernels_.emplace_back(CachedKernel{request, std::move(*kernel)}).kernel;
    return {&found, found.most_rows()};
  }

  std::string unsupported_shape(const KernelRequest& request) const override {
    return metal::unsupported_shape(request);
  }

  void reach(const Device& other) override {
    refuse();
    state_->gpu.reach(static_cast<const CudaDevice&>(other).state_->gpu);
  }

  void set_limits(const SubmissionLimits& limits) override {
    refuse();
    const Current current(state_->gpu);
    state_->submissions.set_limits(limits);
  }

  Program compile(DispatchTable table, const StepMemory& memory) override {
    refuse();
    const Current current(state_->gpu);
    auto program = std::make_unique<CompiledProgram>(
        compile_program(std::move(table), memory, state_->modules));
    grow(state_->workspace, program->workspace_bytes, "workspace");
    grow(state_->staged_weights, program->staged_bytes, "staged weights");
    state_->programs.push_back(std::move(program));
    return {state_->programs.back().get()};
  }

  void release_program(Program program) override {
    if (forked() || program.handle == nullptr) return;
    assert(!state_->submissions.uses(program_of(program)));
    const Current current(state_->gpu);
    state_->steps.forget(program.handle);
    std::erase_if(state_->programs,
                  [&](const auto& owned) { return owned.get() == program.handle; });
  }

  Ticket submit(const Replay& replay) override {
    refuse();
    const Current current(state_->gpu);
    Submission& submission = state_->submissions.stage(replay);
    const Ticket ticket = state_->submissions.n_submitted() + 1;
    state_->submissions.begin(submission);
    state_->steps.launch(submission, state_->scratch());
    state_->submissions.end(submission, ticket);
    return state_->submissions.commit();
  }

  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override {
    refuse_in_child();
    Submissions& submissions = state_->submissions;
    const Submission& wanted = submissions.at(ticket);
    if (ticket >= failed_ticket_) refuse();
    const Current current(state_->gpu);
    // A caller that waits without a limit passes milliseconds that would overflow the clock's nanoseconds.
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
    const Current current(state_->gpu);
    std::vector<CommandTime> times;
    Stopwatch watch(state_->gpu, kLongest);
    Submission& submission = state_->submissions.stage(replay);
    const Ticket ticket = state_->submissions.n_submitted() + 1;
    state_->submissions.begin(submission);
    for (uint32_t step = 0; step < submission.steps; ++step)
      for (uint32_t pass = 0; pass < submission.passes.size(); ++pass)
        time_pass(submission, pass, watch, times);
    state_->submissions.end(submission, ticket);
    state_->submissions.commit();
    wait_for_all(Clock::now() + kLongest);
    refuse();
    return times;
  }

 private:
  struct State {
    explicit State(uint32_t ordinal) : opened(open_gpu(ordinal)) { current.reset(); }
    // To be called before the destructor: freeing what the members have needs a current context.
    void end() { current = std::make_unique<Current>(gpu); }

    StepScratch scratch() const { return {workspace.at(), staged_weights.at()}; }

    void finish_steps(std::string_view what) {
      const Driver& driver = gpu.driver();
      Event event = nullptr;
      driver.check(driver.event_create(&event, kNoTiming), what);
      const Result recorded = driver.event_record(event, gpu.steps());
      const Result result =
          recorded == kSuccess ? wait_for(driver, event, Clock::now() + kLongest) : recorded;
      static_cast<void>(driver.event_destroy(event));
      driver.check(result, what);
    }

    const std::shared_ptr<Opened> opened;
    const Gpu& gpu = opened->gpu;
    Modules& modules = opened->modules;
    // Set while members are constructed and destroyed; between, each call makes its own.
    std::unique_ptr<Current> current = std::make_unique<Current>(gpu);
    Memory memory{gpu};
    Submissions submissions{gpu};
    Steps steps{gpu};
    // Commands run one after the other, so one workspace serves all.
    OwnedBlock workspace;
    OwnedBlock staged_weights;  // of those in the host's memory
    std::vector<std::unique_ptr<CompiledProgram>> programs;
  };

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

  // Captured steps have the address of the old block, and submissions in flight use it.
  void grow(OwnedBlock& block, uint64_t bytes, std::string_view label) {
    if (bytes <= block.size()) return;
    wait_for_all(Clock::now() + kLongest);
    refuse();
    state_->steps.forget();
    block = {};
    block = OwnedBlock(state_->memory, bytes, label);
  }

  // Waits for the oldest submission; false: the deadline came first.
  bool finish_front(Clock::time_point deadline) {
    const Ticket ticket = state_->submissions.n_done() + 1;
    Submission& submission = state_->submissions.front();
    const Result result = wait_for(state_->gpu.driver(), submission.done, deadline);
    if (result == kNotReady) return false;
    if (result != kSuccess) {
      fail(result);
      throw DeviceError(failure_);
    }
    state_->submissions.collect(submission, ticket);
    state_->submissions.finish_front();
    return true;
  }

  // After an error a CUDA context is unusable: submissions in flight never end, and nothing runs in it any
  // more.
  void fail(Result result) {
    failure_ = state_->gpu.driver().describe(result, "a step on the GPU");
    failed_ticket_ = state_->submissions.n_done() + 1;
    forget_gpu(state_->gpu.ordinal());
    while (!state_->submissions.idle()) {
      state_->submissions.front().outcome.finished = true;
      state_->submissions.finish_front();
    }
  }

  // Waits for whatever is in flight. An error is kept, and thrown by the next call (`refuse`).
  void wait_for_all(Clock::time_point deadline) {
    const Current current(state_->gpu);
    while (!state_->submissions.idle()) {
      const Result result =
          wait_for(state_->gpu.driver(), state_->submissions.front().done, deadline);
      if (result != kSuccess) return fail(result);
      state_->submissions.collect(state_->submissions.front(), state_->submissions.n_done() + 1);
      state_->submissions.finish_front();
    }
  }

  void time_pass(const Submission& submission, uint32_t pass_index, Stopwatch& watch,
                 std::vector<CommandTime>& times) {
    const Pass& pass = submission.passes[pass_index];
    const CompiledProgram& program = program_of(pass.program);
    for (uint32_t i = 0; i < program.commands.size(); ++i) {
      if ((program.commands[i].over_head_rows ? pass.n_head_rows : pass.n_rows) == 0) continue;
      const double seconds = watch.time([&] {
        state_->steps.launch_command(state_->gpu.steps(), program, i, pass, state_->scratch());
      });
      times.push_back({program.labels[i], seconds});
    }
  }

  const HomeProcess home_;
  ChipConfig chip_;
  KernelChoice choice_;
  mutable std::deque<CachedKernel> kernels_;  // each that was asked for; pipelines point to them
  std::unique_ptr<State> state_;
  std::string failure_;  // of the GPU: nothing runs any more
  Ticket failed_ticket_ = UINT64_MAX;
};

}  // namespace

std::vector<Level> levels() {
  bool is_available = false;
  try {
    is_available = open_gpu() != nullptr;
  } catch (const DeviceError&) {
    // There is none; opening the device says why.
  }
  return {{kLevel, "an NVIDIA GPU of compute capability 8.0 or later", is_available,
           !kernel_images().empty()}};
}

}  // namespace cuda

std::shared_ptr<Device> create_cuda_device(const DeviceOptions& options) {
  return std::make_shared<cuda::CudaDevice>(options);
}

}  // namespace akunu
