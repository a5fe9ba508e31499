// Launches the commands of a submission's steps: one by one, or as a graph that was captured once for
// steps of that shape and is launched as a whole.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

#include "core/device.h"
#include "cuda/gpu.h"
#include "cuda/program.h"
#include "cuda/submissions.h"

namespace akunu::cuda {

// Memory that commands share, one after the other; 0 where there is none.
struct StepScratch {
  DevicePointer workspace = 0;
  DevicePointer staged_weights = 0;
};

class Steps {
 public:
  explicit Steps(const Gpu& gpu) : gpu_(gpu) {}
  ~Steps() { forget(); }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // All steps of it, behind what the stream has already. Throws DeviceError.
  void launch(const Submission& submission, const StepScratch& scratch);
  // One command of a pass, into a stream.
  void launch_command(Stream stream, const CompiledProgram& program, uint32_t index,
                      const Pass& pass, const StepScratch& scratch) const;

  // Drops all graphs: their addresses are no longer true. Nothing may be in flight.
  void forget();
  // Drops those of a program that goes. Any thread may.
  void forget(const void* program);

 private:
  // A step over certain rows. What is in them is in memory.
  struct Captured {
    std::vector<Pass> parts;
    GraphExec exec = nullptr;
  };

  void stage_weights(Stream stream, const CompiledCommand& command, DevicePointer to) const;
  void launch_step(Stream stream, const Submission& submission, const StepScratch& scratch) const;
  GraphExec captured(const Submission& submission, const StepScratch& scratch);

  const Gpu& gpu_;
  std::mutex mutex_;            // held by who looks for graphs or drops them
  std::list<Captured> graphs_;  // the one used last is the first
};

}  // namespace akunu::cuda
