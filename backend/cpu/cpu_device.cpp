// The Device interface on the CPU. cpu_device.h says what it promises.
//
// 1. What it does. Buffers and mapped weights (memory.h, numa.h), kernels of the level
//    (isa_level.h), programs (program.h). `wait` runs a submission: its copies, then its steps,
//    stage by stage on the worker threads (`run_stages`). A stage: commands that need nothing of
//    each other.
// 2. What bounds it. The kernels; between two stages, the barrier of the workers.
// 3. Where to change it. Activation kinds: `activation_kind`. How stages are shared out:
//    slice_shares.cpp, thread_pool.cpp. Kernels: kernels/.
#include "cpu/cpu_device.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <unordered_map>

#include "core/device_checks.h"
#include "core/error.h"
#include "core/home_process.h"
#include "core/process_limits.h"
#include "cpu/chip.h"
#include "cpu/isa_level.h"
#include "cpu/memory.h"
#include "cpu/numa.h"
#include "cpu/processors.h"
#include "cpu/program.h"
#include "cpu/submissions.h"
#include "cpu/thread_pool.h"

namespace akunu {
namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kMaxThreads = 256;

constexpr std::string_view kMappedLabel = "weights";
constexpr std::string_view kCopiedLabel = "weights (copied)";

// What a buffer's handle points to.
struct Allocation {
  MemoryBlock block;                  // empty for mapped weights
  std::shared_ptr<const void> owner;  // of mapped weights
  std::string label;
  uint64_t counted_bytes = 0;
  bool mapped = false;
};

// The alignment that kernels need of a weight: that of its scalars, since vectors are loaded unaligned.
uint64_t alignment_of(Format format) {
  return format == Format::f32 ? alignof(float) : alignof(uint16_t);
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options) : isa_(choose_isa_level(options.isa)) {
    if (options.threads > kMaxThreads)
      throw ArgumentError("threads must be " + std::to_string(kMaxThreads) + " or fewer, got " +
                          std::to_string(options.threads));
    chip_ = describe_chip(
        isa_, options.threads > 0 ? options.threads : std::min(kMaxThreads, usable_cores()));
    nodes_ = nodes_to_spread_over(chip_.workers);
    if (!nodes_.empty()) chip_.reason += "; " + describe_placement(nodes_);
  }

  ~CpuDevice() override {
    // A forked child has none of the worker threads, so there is nothing to join, and what they might have
    // locked cannot be freed.
    if (forked()) static_cast<void>(pool_.release());
  }

  std::string_view backend() const override { return "cpu"; }
  const ChipConfig& chip() const override { return chip_; }

  Buffer allocate(uint64_t bytes, std::string_view label) override {
    refuse_in_child();
    Allocation allocation{take_memory(bytes, label), nullptr, std::string(label), bytes, false};
    std::byte* contents = allocation.block.data();
    return add(std::move(allocation), contents, bytes);
  }

  void release(const Buffer& buffer) override {
    if (!forked()) forget_copies(buffer);
    assert(forked() || !in_flight(buffer));
    remove(buffer);
  }

  MemoryLeft memory_left() const override {
    MemoryLeft left{.memory = cpu::available_memory(), .address_space = address_space_left()};
    // The system counts pages as available that were allocated here and not written yet.
    if (left.memory) *left.memory -= std::min(*left.memory, untouched_bytes());
    if (left.address_space && !pool_) {  // the worker threads will need stacks
      const uint64_t stacks = thread_stack_bytes() * chip_.workers;
      *left.address_space -= std::min(*left.address_space, stacks);
    }
    return left;
  }

  std::vector<MemoryUse> memory_use() const override { return ledger_.uses(); }

  MemoryUse use_of(const Buffer& buffer) const override {
    const auto& allocation = *static_cast<const Allocation*>(buffer.handle);
    return {allocation.label, allocation.counted_bytes, allocation.mapped};
  }

  void write(const Binding& destination, std::span<const std::byte> bytes) override {
    check_copy("write", destination, bytes.size());
    if (in_flight(destination.buffer))
      throw DeviceError("write of a buffer that a submission in flight uses; wait for it first");
    if (static_cast<const Allocation*>(destination.buffer.handle)->mapped)
      throw ArgumentError("a mapped weight cannot be written");
    if (!bytes.empty())
      std::memcpy(destination.buffer.contents + destination.offset, bytes.data(), bytes.size());
  }

  void read(const Binding& source, std::span<std::byte> bytes) const override {
    check_copy("read", source, bytes.size());
    if (!bytes.empty())
      std::memcpy(bytes.data(), source.buffer.contents + source.offset, bytes.size());
  }

  void copy(std::span<const Copy> copies) override {
    refuse_in_child();
    check_copies(copies);
    for (const Copy& each : copies)
      if (static_cast<const Allocation*>(each.to.buffer.handle)->mapped)
        throw ArgumentError("a mapped weight cannot be written");
    const std::lock_guard lock(in_flight_);
    if (submissions_.idle())
      run_copies(copies);
    else
      submissions_.add(copies);
  }

  // Another CPU's memory is this one's.
  void reach(const Device&) override {}

  Weight import_weight(const WeightSource& source) override {
    refuse_in_child();
    check_weight(source);
    return import_planes(
        source, [&](const WeightPart& part) { return import(part, alignment_of(source.format)); },
        [&](const Buffer& buffer) { remove(buffer); });
  }

  void release_weight(const Weight& weight) override {
    for (const Binding& plane : weight.planes) {
      if (!plane) continue;
      assert(forked() || !in_flight(plane.buffer));
      remove(plane.buffer);
    }
  }

  // Products of 8-bit integers are exact and fast; for float weights, float. MLX's affine weights
  // were rounded without regard to the error of an input, and get one of 14 bits.
  ActivationKind activation_kind(Format format, RowClass row_class) const override {
    if (row_class == RowClass::many && format != Format::f32 && format_info(format).n_planes == 1)
      return format_info(format).block_size > 1 ? isa_.level->prompts_with_blocks
                                                : isa_.level->prompts_with_halves;
    if (is_mlx_affine(format)) return ActivationKind::q16_32;
    switch (format) {
      case Format::f32:
      case Format::f16:
      case Format::bf16:
        return ActivationKind::f32;
      case Format::q4_0:
      case Format::q4_1:
      case Format::q5_0:
      case Format::q5_1:
      case Format::q8_0:
      case Format::q2_k:
      case Format::q3_k:
      case Format::q4_k:
      case Format::q5_k:
      case Format::q6_k:
      case Format::iq4_nl:
      case Format::iq4_xs:
      case Format::mxfp4:
      case Format::nvfp4:
      case Format::iq2_xxs:
      case Format::iq2_xs:
      case Format::iq2_s:
      case Format::iq3_xxs:
      case Format::iq3_s:
        return ActivationKind::q8_32;
      case Format::mlx_mxfp4:
      case Format::mlx_first:  // and the rest of its family
      case Format::mlx_last:
        return ActivationKind::q16_32;
    }
    __builtin_unreachable();
  }

  uint64_t activation_row_bytes(ActivationKind kind, uint64_t k) const override {
    switch (kind) {
      case ActivationKind::f32:
        return k * 4;
      case ActivationKind::f16:
        return k * 2;
      case ActivationKind::bf16:
        // Whole cache lines, an odd number of them: rows then fall into different sets of a cache.
        return 64 * ((k + 31) / 32 | 1);
      case ActivationKind::bf16_pair:
        return 64 * ((k + 31) / 32 * 2 + 1);
      case ActivationKind::q8_32:
        return k + k / 32 * 8;  // numbers, then a scale and a sum per 32
      case ActivationKind::q16_32:
        return (k + 31) / 32 * 68;  // numbers, then a scale per 32
    }
    __builtin_unreachable();
  }

  Pipeline find_kernel(const KernelRequest& request) const override {
    const std::optional<Kernel> kernel = cpu::find_kernel(*isa_.level, request);
    if (!kernel) return {};
    const auto known = std::find(kernels_.begin(), kernels_.end(), *kernel);
    return {known != kernels_.end() ? &*known : &kernels_.emplace_back(*kernel)};
  }

  void set_limits(const SubmissionLimits& limits) override {
    refuse_in_child();
    submissions_.set_limits(limits);
    reserve_plan();
  }

  Program compile(DispatchTable table, const StepMemory& memory) override {
    refuse_in_child();
    auto program = std::make_unique<CompiledProgram>(compile_program(std::move(table), memory));
    start_workers();
    if (program->scratch_bytes > scratch_bytes_) reserve_scratch(program->scratch_bytes);
    if (program->commands.size() > max_commands_) {
      max_commands_ = program->commands.size();
      reserve_plan();
    }
    programs_.push_back(std::move(program));
    return {programs_.back().get()};
  }

  void release_program(Program program) override {
    std::erase_if(programs_, [&](const auto& owned) { return owned.get() == program.handle; });
  }

  Ticket submit(const Replay& replay) override {
    refuse_in_child();
    const std::lock_guard lock(in_flight_);
    return submissions_.push(replay);
  }

  // At least one step runs, however short the time-out.
  Outcome wait(Ticket ticket, std::chrono::milliseconds timeout) override {
    refuse_in_child();
    const Submission& wanted = submissions_.at(ticket);
    // Milliseconds of a caller who means "for ever" would overflow the clock's nanoseconds.
    const Clock::time_point deadline =
        Clock::now() + std::min<std::chrono::milliseconds>(timeout, std::chrono::years(1));
    while (!submissions_.done(ticket)) {
      if (!work_on(submissions_.front(), deadline)) break;
      const std::lock_guard lock(in_flight_);
      submissions_.finish_front();
    }
    return wanted.outcome;
  }

  std::vector<CommandTime> profile(const Replay& replay) override {
    refuse_in_child();
    if (!submissions_.idle())
      throw DeviceError("a profile needs the device alone; wait for what is in flight first");
    submissions_.push(replay);
    Submission& submission = submissions_.front();
    begin(submission);
    plan_.lay_out(submission.passes, true);
    plan_.rewind();
    std::vector<CommandTime> times;
    const std::span<const uint64_t> n_slices = plan_.stage_slices();
    for (uint32_t stage = 0; stage < n_slices.size(); ++stage) {
      const Clock::time_point start = Clock::now();
      run_stages(stage, n_slices.subspan(stage, 1));
      const std::chrono::duration<double> seconds = Clock::now() - start;
      const PlannedCommand& command = plan_.last_of(stage);
      times.push_back({command.program->labels[command.index], seconds.count()});
    }
    submissions_.finish_front();
    return times;
  }

 private:
  bool forked() const { return home_.is_another(); }

  void refuse_in_child() const {
    home_.refuse_elsewhere(
        "the process was forked after the model was loaded; load it again in the child");
  }

  MemoryBlock take_memory(uint64_t bytes, std::string_view label) {
    const auto refuse = [&](const MemoryLeft& left) {
      throw OutOfMemoryError(std::string(label) + " needs " + mebibytes(bytes) + "; " +
                             describe_refusal(bytes, left));
    };
    if (bytes >= kAskSystemFrom)
      if (const MemoryLeft left = memory_left(); !left.fits(bytes)) refuse(left);
    MemoryBlock block(bytes);
    if (block.data() == nullptr) refuse(memory_left());
    // If the system refuses to interleave, a page comes from the node that touches it first.
    if (!nodes_.empty() && block.is_mapped()) interleave(block.data(), block.size(), nodes_);
    return block;
  }

  Buffer import(const WeightPart& part, uint64_t alignment) {
    const uint64_t bytes = part.bytes.size();
    Allocation allocation;
    allocation.counted_bytes = bytes;
    std::byte* contents = nullptr;
    if (reinterpret_cast<uintptr_t>(part.bytes.data()) % alignment == 0) {
      allocation.owner = part.owner;
      allocation.label = kMappedLabel;
      allocation.mapped = !part.mapping.empty();  // else somebody made the numbers in memory
      contents = const_cast<std::byte*>(part.bytes.data());  // kernels only read weights
    } else {
      allocation.block = take_memory(bytes, kCopiedLabel);
      allocation.label = kCopiedLabel;
      contents = allocation.block.data();
      std::memcpy(contents, part.bytes.data(), bytes);
    }
    return add(std::move(allocation), contents, bytes);
  }

  Buffer add(Allocation allocation, std::byte* contents, uint64_t bytes) {
    ledger_.add(allocation.label, allocation.mapped, bytes);
    auto owned = std::make_unique<Allocation>(std::move(allocation));
    void* handle = owned.get();
    allocations_.emplace(handle, std::move(owned));
    return {handle, bytes, contents};
  }

  void remove(const Buffer& buffer) {
    const auto found = allocations_.find(buffer.handle);
    if (found == allocations_.end()) return;
    ledger_.remove(found->second->label, found->second->mapped, found->second->counted_bytes);
    allocations_.erase(found);
  }

  uint64_t untouched_bytes() const {
    uint64_t bytes = 0;
    for (const auto& [handle, allocation] : allocations_)
      bytes += allocation->block.untouched_bytes();
    return bytes;
  }

  void forget_copies(const Buffer& buffer) {
    const std::lock_guard lock(in_flight_);
    submissions_.forget(buffer);
  }

  bool in_flight(const Buffer& buffer) const {
    const std::lock_guard lock(in_flight_);
    const auto uses = [&](const Copy& copy) {
      return copy.from.buffer.handle == buffer.handle || copy.to.buffer.handle == buffer.handle;
    };
    if (std::any_of(submissions_.waiting().begin(), submissions_.waiting().end(), uses))
      return true;
    for (Ticket ticket = submissions_.n_done() + 1; ticket <= submissions_.n_submitted();
         ++ticket) {
      for (const Pass& pass : submissions_.at(ticket).passes)
        if (static_cast<const CompiledProgram*>(pass.program.handle)->uses(buffer.handle))
          return true;
      const std::vector<Copy>& copies = submissions_.at(ticket).copies;
      if (std::any_of(copies.begin(), copies.end(), uses)) return true;
      for (const QueuedUpdate& update : submissions_.at(ticket).updates)
        if (update.destination.buffer.handle == buffer.handle) return true;
    }
    return false;
  }

  void start_workers() {
    if (pool_) return;
    try {
      pool_ = std::make_unique<ThreadPool>(chip_.workers, nodes_);
    } catch (const std::system_error& error) {
      throw DeviceError("the system refused a thread of " + std::to_string(chip_.workers) + ": " +
                        error.what());
    }
  }

  void reserve_scratch(uint64_t bytes) {
    constexpr std::string_view kLabel = "scratch of the workers";
    scratch_bytes_ = (bytes + 63) / 64 * 64;
    const uint64_t total = scratch_bytes_ * chip_.workers, before = scratch_.size();
    scratch_ = take_memory(total, kLabel);
    ledger_.remove(kLabel, false, before);
    ledger_.add(kLabel, false, total);
  }

  void reserve_plan() {
    plan_.reserve(max_commands_ * submissions_.limits().max_passes, chip_.workers);
  }

  // Runs what is left of a submission; false: the deadline came first.
  bool work_on(Submission& submission, Clock::time_point deadline) {
    Outcome& outcome = submission.outcome;
    if (!submission.started) begin(submission);
    // Also after a time-out, in case a compile in between has moved the plan.
    plan_.lay_out(submission.passes);
    while (outcome.steps_done < submission.steps) {
      if (!plan_.stage_slices().empty()) run_planned(submission.passes);
      ++outcome.steps_done;
      if (outcome.steps_done < submission.steps && Clock::now() >= deadline) return false;
    }
    collect_statuses(submission);
    outcome.finished = true;
    return true;
  }

  static void run_copies(std::span<const Copy> copies) {
    for (const Copy& copy : copies)
      if (copy.bytes > 0)
        std::memcpy(copy.to.buffer.contents + copy.to.offset,
                    copy.from.buffer.contents + copy.from.offset, copy.bytes);
  }

  // Before the first step: copies, then the host's updates, rows and spans; statuses are cleared.
  void begin(Submission& submission) {
    submission.started = true;
    run_copies(submission.copies);
    for (const QueuedUpdate& update : submission.updates)
      if (update.n_bytes > 0)
        std::memcpy(update.destination.buffer.contents + update.destination.offset,
                    submission.update_bytes.data() + update.first_byte, update.n_bytes);
    if (submission.passes.empty()) return;
    const StepPointers& memory = pointers_of(submission);
    std::copy(submission.rows.begin(), submission.rows.end(), memory.rows);
    std::copy(submission.spans.begin(), submission.spans.end(), memory.spans);
    std::fill_n(memory.statuses, end_of_rows(submission.passes), Status{});
  }

  void run_planned(std::span<const Pass> passes) {
    plan_.rewind();
    // Few rows are generated tokens: the next submission comes within a fraction of a millisecond,
    // so the workers spin for it before they sleep.
    uint64_t n_rows = 0;
    for (const Pass& pass : passes) n_rows += pass.n_rows;
    using Length = ThreadPool::Length;
    run_stages(0, plan_.stage_slices(), n_rows <= kMaxFewRows ? Length::is_short : Length::is_long);
  }

  void run_stages(uint32_t first, std::span<const uint64_t> n_slices,
                  ThreadPool::Length length = ThreadPool::Length::is_long) {
    struct Context {
      CpuDevice& device;
      uint32_t first;
    } context{*this, first};
    pool_->run(
        [](void* pointer, uint32_t worker, uint32_t stage) {
          const auto& [device, first_stage] = *static_cast<Context*>(pointer);
          return device.plan_.run_stage(first_stage + stage, worker,
                                        device.scratch_.data() + worker * device.scratch_bytes_);
        },
        &context, n_slices, length);
  }

  static void collect_statuses(Submission& submission) {
    if (submission.passes.empty()) return;
    const std::span statuses(pointers_of(submission).statuses, end_of_rows(submission.passes));
    const auto is_bad = [](const Status& status) { return status.code != kStatusOk; };
    if (std::ranges::none_of(statuses, is_bad)) return;
    submission.statuses.assign(statuses.begin(), statuses.end());
    submission.outcome.statuses = submission.statuses;
  }

  static const StepPointers& pointers_of(const Submission& submission) {
    return static_cast<const CompiledProgram*>(submission.passes.front().program.handle)->pointers;
  }

  const HomeProcess home_;
  const IsaChoice isa_;
  ChipConfig chip_;
  std::vector<MemoryNode> nodes_;       // to spread over; empty where there is one
  mutable std::deque<Kernel> kernels_;  // each that was asked for; pipelines point to them
  std::unordered_map<const void*, std::unique_ptr<Allocation>> allocations_;
  MemoryLedger ledger_;
  std::vector<std::unique_ptr<CompiledProgram>> programs_;
  Submissions submissions_;
  // Held while the list of submissions in flight changes, or is searched for what they use.
  mutable std::mutex in_flight_;
  MemoryBlock scratch_;
  uint64_t scratch_bytes_ = 0;  // per worker
  size_t max_commands_ = 0;     // of a program
  StepPlan plan_;
  std::unique_ptr<ThreadPool> pool_;  // last: its helpers end before what they use does
};

}  // namespace
}  // namespace cpu

std::shared_ptr<Device> create_cpu_device(const DeviceOptions& options) {
  return std::make_shared<cpu::CpuDevice>(options);
}

}  // namespace akunu
