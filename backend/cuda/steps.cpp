#include "cuda/steps.h"

#include <algorithm>

#include "core/error.h"

namespace akunu::cuda {
namespace {

// Chips on which a launch may begin before the one before it has ended: kernels/language.cuh.
constexpr uint32_t kEarlyLaunches = 90;

// Shapes of steps that graphs are kept of. A graph of a large model is a few hundred kilobytes.
constexpr size_t kMostGraphs = 24;

bool is_alike(const Pass& a, const Pass& b) {
  return a.program.handle == b.program.handle && a.first_row == b.first_row &&
         a.n_rows == b.n_rows && a.first_head_row == b.first_head_row &&
         a.n_head_rows == b.n_head_rows && a.first_span == b.first_span && a.n_spans == b.n_spans;
}

}  // namespace

void Steps::launch(const Submission& submission, const StepScratch& scratch) {
  if (submission.passes.empty()) return;
  // A prompt's step has a shape of its own, and takes longer than its launches.
  const bool is_graph = has_few_rows(submission.passes);
  const GraphExec exec = is_graph ? captured(submission, scratch) : nullptr;
  for (uint32_t step = 0; step < submission.steps; ++step) {
    if (is_graph)
      gpu_.driver().check(gpu_.driver().graph_launch(exec, gpu_.steps()), "the launch of a step");
    else
      launch_step(gpu_.steps(), submission, scratch);
  }
}

void Steps::launch_step(Stream stream, const Submission& submission,
                        const StepScratch& scratch) const {
  for (const Pass& pass : submission.passes) {
    const CompiledProgram& program = program_of(pass.program);
    for (uint32_t i = 0; i < program.commands.size(); ++i)
      launch_command(stream, program, i, pass, scratch);
  }
}

void Steps::launch_command(Stream stream, const CompiledProgram& program, uint32_t index,
                           const Pass& pass, const StepScratch& scratch) const {
  const CompiledCommand& command = program.commands[index];
  const Scope scope{command.params.data(), command.over_head_rows ? pass.n_head_rows : pass.n_rows,
                    pass.n_spans};
  if (scope.n_rows == 0) return;
  const bool is_staged = !command.staged_weights.empty() && scope.n_rows > kMaxFewRows;
  if (is_staged) stage_weights(stream, command, scratch.staged_weights);
  // A kernel that begins early reads weights before the commands before it have ended: these are not there yet.
  const bool is_early = gpu_.capability() >= kEarlyLaunches && !is_staged;
  bool is_launched = false;
  for (const CompiledLaunch& compiled : command.launches) {
    const Launch& launch = *compiled.launch;
    if (scope.n_rows < launch.min_rows || scope.n_rows > launch.max_rows) continue;
    const Grid grid = launch.grid(scope);
    Arguments arguments = compiled.arguments;
    arguments.pass = {command.over_head_rows ? pass.first_head_row : pass.first_row, scope.n_rows,
                      pass.first_span, pass.n_spans};
    if (command.has_workspace) arguments.slots[kSlotWorkspace] = scratch.workspace;
    if (is_staged)
      for (const StagedWeight& weight : command.staged_weights)
        arguments.slots[weight.slot] = scratch.staged_weights + weight.offset;
    uint32_t shared_bytes = 0;
    for (size_t i = 0; i < arguments.shared_offset.size(); ++i) {
      arguments.shared_offset[i] = shared_bytes;
      shared_bytes += grid.threadgroup_bytes[i];
    }
    void* parameters[] = {&arguments};
    std::array<LaunchAttribute, 2> attributes = {};
    uint32_t n_attributes = 0;
    if (is_early) attributes[n_attributes++] = {.id = LaunchAttributeId::early, .value = {1}};
    if (grid.cluster > 1)
      attributes[n_attributes++] = {.id = LaunchAttributeId::cluster,
                                    .value = {1, 1, grid.cluster}};
    const LaunchConfig config{.grid = grid.threadgroups,
                              .block = grid.threads,
                              .shared_bytes = shared_bytes,
                              .stream = stream,
                              .attributes = attributes.data(),
                              .n_attributes = n_attributes};
    const Result result = gpu_.driver().launch(&config, compiled.function, parameters, nullptr);
    if (result != kSuccess)
      throw DeviceError(gpu_.driver().describe(
          result, "the launch of " + launch.function + " for " + program.labels[index]));
    is_launched = true;
  }
  if (!is_launched)
    throw DeviceError("no launch of " + program.labels[index] + " serves " +
                      std::to_string(scope.n_rows) + " rows");
}

// In the stream of the commands, so that a copy waits for the command before, which may read the same memory.
void Steps::stage_weights(Stream stream, const CompiledCommand& command, DevicePointer to) const {
  for (const StagedWeight& weight : command.staged_weights)
    gpu_.driver().check(
        gpu_.driver().copy_to_device(to + weight.offset, reinterpret_cast<const void*>(weight.at),
                                     weight.bytes, stream),
        "a copy of weights to the GPU");
}

GraphExec Steps::captured(const Submission& submission, const StepScratch& scratch) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(graphs_, [&](const Captured& graph) {
    return std::ranges::equal(graph.parts, submission.passes, is_alike);
  });
  if (known != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, known);
    return graphs_.front().exec;
  }
  const Driver& driver = gpu_.driver();
  driver.check(driver.capture_begin(gpu_.capture(), kCaptureOfThread), "recording a step");
  Graph graph = nullptr;
  try {
    launch_step(gpu_.capture(), submission, scratch);
  } catch (...) {
    static_cast<void>(driver.capture_end(gpu_.capture(), &graph));
    if (graph != nullptr) static_cast<void>(driver.graph_destroy(graph));
    throw;
  }
  driver.check(driver.capture_end(gpu_.capture(), &graph), "recording a step");
  Captured made{submission.passes, nullptr};
  const Result result = driver.graph_instantiate(&made.exec, graph, 0);
  static_cast<void>(driver.graph_destroy(graph));
  driver.check(result, "preparing a recorded step");
  if (graphs_.size() == kMostGraphs) {
    // The driver keeps what a graph in flight needs until it is done.
    static_cast<void>(driver.graph_exec_destroy(graphs_.back().exec));
    graphs_.pop_back();
  }
  graphs_.push_front(std::move(made));
  return graphs_.front().exec;
}

void Steps::forget(const void* program) {
  const std::lock_guard lock(mutex_);
  const auto is_part = [&](const Pass& part) { return part.program.handle == program; };
  std::erase_if(graphs_, [&](const Captured& graph) {
    if (std::ranges::none_of(graph.parts, is_part)) return false;
    static_cast<void>(gpu_.driver().graph_exec_destroy(graph.exec));
    return true;
  });
}

void Steps::forget() {
  const std::lock_guard lock(mutex_);
  for (const Captured& graph : graphs_)
    static_cast<void>(gpu_.driver().graph_exec_destroy(graph.exec));
  graphs_.clear();
}

}  // namespace akunu::cuda
