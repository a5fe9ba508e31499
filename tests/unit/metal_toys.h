// The Metal device over the emulator with programs of toy kernels, which the driver has in a .metal of
// its own: commands of `add` (operand 0 inout, operand 1 in).
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "metal/kernel.h"
#include "metal/metal_device.h"

namespace akunu::test {

using metal::Grid;
using metal::Kernel;
using metal::Scope;

inline constexpr auto kLong = std::chrono::minutes(1);

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A variable of the environment, for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

struct ToyParams {
  uint32_t n = 1;
  uint32_t value = 0;
  uint32_t first = 0;
  uint32_t wanted = 0;
};

inline Grid one_thread_each(const Scope& scope) {
  const auto n = scope.get<ToyParams>().n;
  return {.threadgroups = {(n + 31) / 32, 1, 1}, .threads = {32, 1, 1}};
}
inline Grid one_simdgroup(const Scope&) { return {}; }
inline Kernel toy(const char* function, Grid (*grid)(const Scope&) = one_thread_each) {
  Kernel kernel;
  kernel.launches.push_back({.function = function, .constants = {}, .grid = grid});
  return kernel;
}

struct ToyCommand {
  const Kernel* kernel;
  ToyParams params;
  int32_t waits_for = -1;
  Symbol extent = Symbol::rows;
  Binding weight = {};
};

struct ToyMachine {
  static constexpr uint32_t kRows = 16;
  static constexpr uint64_t kDataBytes = 1 << 14;

  explicit ToyMachine(const std::string& level = "checked")
      : device(create_metal_device({.isa = level})),
        data(device, kDataBytes, "data"),
        rows(device, kRows * sizeof(Row), "rows"),
        spans(device, kRows * sizeof(Span), "spans"),
        pages(device, 64, "pages"),
        sequences(device, sizeof(SequenceRecord), "sequences"),
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
      command.operands[0] = data.binding();
      command.operands[1] = toy_command.weight ? toy_command.weight : data.binding();
      std::memcpy(command.params.data(), &toy_command.params, sizeof(ToyParams));
      table.labels.push_back("command " + std::to_string(table.commands.size()));
      table.commands.push_back(command);
      table.waits_for.push_back(toy_command.waits_for);
    }
    return device->compile(std::move(table),
                           {rows.get(), spans.get(), pages.get(), sequences.get(), status.get()});
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

  Outcome run(Program program, uint32_t steps = 1, uint32_t n_rows = 1) {
    const Pass pass = pass_over(program, n_rows);
    return device->wait(submit(std::span(&pass, 1), steps), kLong);
  }

  uint32_t* words() const { return reinterpret_cast<uint32_t*>(data.get().contents); }

  std::shared_ptr<Device> device;
  OwnedBuffer data, rows, spans, pages, sequences, status;
};

}  // namespace akunu::test
