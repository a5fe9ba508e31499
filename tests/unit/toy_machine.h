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
  static constexpr uint32_t kRows = 32;
  static constexpr uint64_t kDataBytes = 1 << 14;

  struct ToyCommand {
    const Kernel* kernel;
    Params params;
    int32_t waits_for = -1;
    Extent extent = Extent::rows;
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
      command.extent = toy_command.extent;
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

// Copies within memory take their place between submissions. `append` as above.
template <class Machine>
void check_copies_between_submissions(Machine& machine, Program append) {
  Device& device = *machine.device;
  const auto word = [&](uint32_t i) { return machine.data.binding(4 * i); };
  const Pass pass = Machine::pass_over(append);
  Ticket last = 0;
  for (uint32_t i = 0; i < 3; ++i) {  // word 0 becomes 1, 2, 3, and is copied to words 8, 9, 10
    const uint32_t value = i + 1;
    const std::array<Update, 1> updates{{{word(0), std::as_bytes(std::span(&value, 1))}}};
    last = machine.submit(std::span(&pass, 1), 1, updates);
    const std::array<Copy, 1> copies{{{word(0), word(8 + i), 4}}};
    device.copy(copies);
  }
  const uint32_t zero = 0;
  check(contains(message_of<DeviceError>(
                     [&] { device.write(word(0), std::as_bytes(std::span(&zero, 1))); }),
                 "wait for it first"),
        "memory that is to be copied is in use");
  device.wait(machine.submit(std::span(&pass, 1)), kLong);
  const uint32_t* words = machine.words();
  check(words[8] == 1 && words[9] == 2 && words[10] == 3, "each copy has what was there then");
  check(device.wait(last, kLong).finished, "and takes no ticket");

  const std::array<Copy, 2> idle{{{word(8), word(16), 12}, {word(10), word(20), 4}}};
  device.copy(idle);
  words = machine.words();
  check(words[16] == 1 && words[17] == 2 && words[18] == 3 && words[20] == 3,
        "with nothing in flight it is done at once");

  const auto refused = [&](const Copy& copy) {
    return message_of<ArgumentError>([&] { device.copy(std::span(&copy, 1)); });
  };
  check(contains(refused({word(0), word(1), 8}), "overlaps itself"), "overlapping ranges");
  check(contains(refused({machine.data.binding(2), word(8), 4}), "not one of whole words"),
        "half a word");
  check(contains(refused({word(0), machine.data.binding(Machine::kDataBytes - 4), 8}),
                 "leaves the buffer of 16384 bytes"),
        "past the end");
  {
    const OwnedBuffer dropped(machine.device, 64, "dropped");
    last = machine.submit(std::span(&pass, 1));
    const std::array<Copy, 1> copies{{{word(0), dropped.binding(), 4}}};
    device.copy(copies);
  }  // what was to be copied to it is forgotten
  device.wait(machine.submit(std::span(&pass, 1)), kLong);
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
    failures += !refuses_after_fork([&] { device.copy({}); });
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
