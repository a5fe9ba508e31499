// A device with programs of toy kernels: commands of `add` (operand 0 inout, operand 1 in) whose
// pipelines are kernels of a driver's own, to test the machinery around real ones.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "cpu/cpu_device.h"
#include "cpu/kernel.h"

namespace akunu::test {

// In the place of a command's parameters.
struct ToyParams {
  uint32_t n_slices = 1;
  uint32_t value = 0;
  uint32_t scratch_bytes = 0;
  uint32_t milliseconds = 0;
};

inline const ToyParams& toy(const cpu::Call& call) {
  return *static_cast<const ToyParams*>(call.params);
}
inline uint64_t toy_slices(const cpu::Call& call) { return toy(call).n_slices; }
inline uint64_t toy_scratch(const cpu::Call& call) { return toy(call).scratch_bytes; }

struct ToyCommand {
  const cpu::Kernel* kernel;
  ToyParams params;
  int32_t waits_for = -1;
  Symbol extent = Symbol::rows;
};

struct ToyMachine {
  static constexpr uint32_t kRows = 16;
  static constexpr uint64_t kDataBytes = 1 << 16;

  explicit ToyMachine(uint32_t threads)
      : device(create_cpu_device({.threads = threads, .isa = "generic"})),
        data(device, kDataBytes, "data"),
        rows(device, kRows * sizeof(Row), "rows"),
        spans(device, kRows * sizeof(Span), "spans"),
        status(device, sizeof(Status), "status") {
    device->set_limits(
        {.max_rows = kRows, .max_updates = 4, .max_update_bytes = 64, .max_passes = 3});
  }

  Program compile(const std::vector<ToyCommand>& commands) {
    DispatchTable table;
    for (const ToyCommand& toy_command : commands) {
      Command command;
      command.operation = Operation::add;
      command.pipeline = {toy_command.kernel};
      command.extent = {toy_command.extent, 1};
      command.operands[0] = command.operands[1] = data.binding();
      std::memcpy(command.params.data(), &toy_command.params, sizeof(ToyParams));
      table.labels.push_back("command " + std::to_string(table.commands.size()));
      table.commands.push_back(command);
      table.waits_for.push_back(toy_command.waits_for);
    }
    return device->compile(std::move(table),
                           {rows.get(), spans.get(), rows.get(), rows.get(), status.get()});
  }

  static Pass pass_over(Program program, uint32_t n_rows = 1) {
    return {program, 0, n_rows, 0, n_rows, 0, 0};
  }

  Ticket submit(std::span<const Pass> passes, uint32_t steps = 1,
                std::span<const Update> updates = {}) {
    Replay replay;
    replay.steps = steps;
    replay.passes = passes;
    replay.updates = updates;
    return device->submit(replay);
  }

  Outcome run(Program program, uint32_t steps = 1) {
    const Pass pass = pass_over(program);
    return device->wait(submit(std::span(&pass, 1), steps), std::chrono::minutes(1));
  }

  template <class T>
  T* contents() const {
    return reinterpret_cast<T*>(data.get().contents);
  }

  std::shared_ptr<Device> device;
  OwnedBuffer data, rows, spans, status;
};

}  // namespace akunu::test
