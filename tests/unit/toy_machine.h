// A device with programs of toy kernels: commands of `add` (operand 0 inout, operand 1 in) whose
// pipelines are kernels of a driver's own, to test the machinery around real ones. And what every
// device does with such programs.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/error.h"
#include "unit/check.h"

namespace akunu::test {

inline constexpr auto kLong = std::chrono::minutes(1);

// `Kernel`: of the backend; `Params`: a driver's own, in the place of a command's parameters.
template <class Kernel, class Params>
struct ToyMachineOf {
  static constexpr uint32_t kRows = 16;
  static constexpr uint64_t kDataBytes = 1 << 14;

  struct ToyCommand {
    const Kernel* kernel;
    Params params;
    int32_t waits_for = -1;
    Symbol extent = Symbol::rows;
    Binding weight = {};  // operand 1; the data where there is none
  };

  explicit ToyMachineOf(std::shared_ptr<Device> used)
      : device(std::move(used)),
        data(device, kDataBytes, "data"),
        rows(device, kRows * sizeof(Row), "rows"),
        spans(device, kRows * sizeof(Span), "spans"),
        pages(device, 64, "pages"),
        sequences(device, sizeof(SequenceRecord), "sequences"),
        statuses(device, kRows * sizeof(Status), "statuses") {
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
      std::memcpy(command.params.data(), &toy_command.params, sizeof(Params));
      table.labels.push_back("command " + std::to_string(table.commands.size()));
      table.commands.push_back(command);
      table.waits_for.push_back(toy_command.waits_for);
    }
    return device->compile(std::move(table),
                           {rows.get(), spans.get(), pages.get(), sequences.get(), statuses.get()});
  }

  static Pass pass_over(Program program, uint32_t n_rows = 1) {
    return {program, 0, n_rows, 0, n_rows, 0, 0};
  }

  Ticket submit(std::span<const Pass> passes, uint32_t steps = 1,
                std::span<const Update> updates = {}, std::span<const Row> rows_of_step = {}) {
    Replay replay;
    replay.rows = rows_of_step;
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
  OwnedBuffer data, rows, spans, pages, sequences, statuses;
};

// Three submissions of two steps over one row: each writes word 0 first, and the second goes on
// with the rows that are there. `append` appends (word 0 * 100 + the row's position) to the list at
// word 101, whose length is word 100, and moves the row on. Returns the last ticket.
template <class Machine>
Ticket submit_three(Machine& machine, Program append) {
  const Pass pass = Machine::pass_over(append);
  Ticket last = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    std::array<Row, 1> rows{};
    rows[0].position = 10 * i;
    uint32_t value = i + 1;
    const std::array<Update, 1> updates{
        {{machine.data.binding(), std::as_bytes(std::span(&value, 1))}}};
    Replay replay;
    replay.steps = 2;
    replay.updates = updates;
    replay.passes = std::span(&pass, 1);
    if (i != 1) replay.rows = rows;
    last = machine.device->submit(replay);
    value = 99;  // what was submitted is a copy
    rows[0].position = 99;
  }
  return last;
}

// Waits for them.
template <class Machine>
void check_three(Machine& machine, Ticket last, std::chrono::milliseconds timeout) {
  const Outcome outcome = machine.device->wait(last, timeout);
  check(outcome.finished && outcome.steps_done == 2 && outcome.statuses.empty(),
        "the last submission is done");
  constexpr std::array<uint32_t, 6> kExpected{100, 101, 202, 203, 320, 321};
  check(machine.words()[100] == 6 &&
            std::equal(kExpected.begin(), kExpected.end(), machine.words() + 101),
        "updates, rows and steps of three submissions take effect in order");
  check(machine.device->wait(last - 1, kLong).steps_done == 2, "an outcome is kept for a while");
}

template <class Run>
bool refuses_after_fork(Run&& run) {
  return contains(message_of<DeviceError>(run),
                  "forked after the model was loaded; load it again in the child");
}

// Forks: in the child everything is refused, and nothing hangs.
template <class Machine>
void check_fork(std::unique_ptr<Machine> machine, Ticket in_flight, std::string_view where = "") {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that hangs is a failure
    Device& device = *machine->device;
    int failures = !refuses_after_fork([&] { device.wait(in_flight, kLong); });
    failures += !refuses_after_fork([&] { device.submit({}); });
    failures += !refuses_after_fork([&] { device.allocate(16, "x"); });
    failures += !refuses_after_fork([&] { device.compile({}, {}); });
    failures += !refuses_after_fork([&] { device.set_limits({}); });
    machine.reset();  // the buffers, then the device
    _exit(failures);
  }
  int state = 0;
  waitpid(child, &state, 0);
  check(WIFEXITED(state) && WEXITSTATUS(state) == 0,
        "a forked child is refused and ends" + std::string(where));
  if (in_flight > 0) check(machine->device->wait(in_flight, kLong).finished, "the parent goes on");
}

}  // namespace akunu::test
