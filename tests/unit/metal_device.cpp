// The Metal device over the emulator, without its kernels: order, submissions in flight, chains,
// recorded passes, statuses, failures, fork. The same file of the device runs on a Mac.
#include <algorithm>
#include <array>
#include <optional>

#include "core/error.h"
#include "metal/emulator/metal_cpp/settings.h"
#include "unit/check.h"
#include "unit/metal_toys.h"

// The kernels of the package are not linked here.
std::optional<akunu::metal::Kernel> akunu::metal::find_kernel(const KernelRequest&, GemmTiles) {
  return {};
}
akunu::metal::Grid akunu::metal::gemm_grid(Format, uint32_t, uint32_t) { return {}; }
std::string akunu::metal::unsupported_shape(const KernelRequest&) { return {}; }

namespace akunu::test {
namespace {

using std::chrono::milliseconds;

// Queues stand still for as long as it lives.
struct ClosedGate {
  ClosedGate() { metal::emulator::open_gate(false); }
  ~ClosedGate() { metal::emulator::open_gate(true); }
};

Grid one_group(const Scope&) { return {.threads = {64, 1, 1}, .threadgroup_bytes = {256}}; }
Grid too_many_threads(const Scope&) { return {.threads = {2048, 1, 1}}; }
uint64_t toy_workspace(const std::byte* params, uint32_t) {
  return reinterpret_cast<const ToyParams*>(params)->n * sizeof(uint32_t);
}

Kernel toy_add(bool twice) {
  Kernel kernel = toy("toy_add");
  kernel.launches[0].constants = {{1, twice, true}};
  return kernel;
}

Kernel toy_through_workspace() {
  Kernel kernel = toy("toy_scatter");
  kernel.launches.push_back(toy("toy_gather").launches[0]);
  kernel.workspace_bytes = toy_workspace;
  return kernel;
}

// Another function for one row than for more.
Kernel toy_by_rows() {
  Kernel kernel = toy_add(false);
  kernel.launches[0].max_rows = 1;
  kernel.launches.push_back(toy_add(true).launches[0]);
  kernel.launches[1].min_rows = 2;
  return kernel;
}

const Kernel kAdd = toy_add(false), kAddTwice = toy_add(true), kSum = toy("toy_sum"),
             kAppend = toy("toy_append", one_simdgroup), kComplain = toy("toy_complain"),
             kNote = toy("toy_note", one_simdgroup), kThroughWorkspace = toy_through_workspace(),
             kTurn = toy("toy_turn", one_group), kStumble = toy("toy_stumble"),
             kByRows = toy_by_rows(), kMissing = toy("toy_missing"),
             kTooManyThreads = toy("toy_append", too_many_threads);

void test_commands_wait_for_what_they_read() {
  ToyMachine machine;
  const Program program =
      machine.compile({{&kAdd, {300, 1}}, {&kSum, {50, 300}, 0}, {&kAddTwice, {300, 1}, 1}});
  uint32_t wrong = 0;
  for (uint32_t round = 0; round < 3; ++round) {
    machine.run(program);
    for (uint32_t i = 0; i < 50; ++i) wrong += machine.words()[1000 + i] != 300 * (3 * round + 1);
  }
  check(wrong == 0, "a command sees what it waits for and nothing of what waits for it");
}

void test_undeclared_dependencies_are_found() {
  ToyMachine machine;
  const Program program = machine.compile({{&kAdd, {300, 1}}, {&kSum, {50, 300}, -1}});
  const std::string message = message_of<DeviceError>([&] { machine.run(program); });
  check(contains(message, "nothing orders"),
        "two commands of a stage that share memory: " + message);

  // Where nobody looks, the order is at least the one that nobody expects.
  ToyMachine unseen("plain");
  unseen.run(unseen.compile({{&kAdd, {300, 1}}, {&kSum, {50, 300}, -1}}));
  check(unseen.words()[1000] == 0, "commands of a stage run in reversed order");
}

void test_launches_of_a_command() {
  ToyMachine machine;
  // Both use their workspace in one stage; neither may see the other's.
  machine.run(
      machine.compile({{&kThroughWorkspace, {100, 3, 0}}, {&kThroughWorkspace, {90, 7, 200}, -1}}));
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < 100; ++i) wrong += machine.words()[i] != (99 - i) * 3;
  for (uint32_t i = 0; i < 90; ++i) wrong += machine.words()[200 + i] != (89 - i) * 7;
  check(wrong == 0, "launches of a command run in order, over a workspace of its own");

  std::fill_n(machine.words(), 64, 0u);
  const Program by_rows = machine.compile({{&kByRows, {1, 1}}});
  machine.run(by_rows, 1, 1);
  check(machine.words()[0] == 1, "one row runs the launch for one row");
  machine.run(by_rows, 1, 2);
  check(machine.words()[0] == 3, "two rows run the launch for more");

  for (uint32_t i = 0; i < 64; ++i) machine.words()[i] = i;
  machine.run(machine.compile({{&kTurn, {}}}));
  check(machine.words()[0] == 63 && machine.words()[63] == 0, "threadgroup memory is there");
}

void test_extents() {
  ToyMachine machine;
  const Program program = machine.compile(
      {{&kNote, {1, 0, 0}, -1, Extent::rows}, {&kNote, {1, 0, 8}, 0, Extent::head_rows}});
  const Pass pass{program, 2, 5, 1, 3, 4, 6};
  machine.device->wait(machine.submit(std::span(&pass, 1)), kLong);
  constexpr std::array<uint32_t, 13> kExpected{2, 5, 4, 6, 3, 0, 0, 0, 1, 3, 4, 6, 3};
  check(std::equal(kExpected.begin(), kExpected.end(), machine.words()),
        "rows, head rows and spans are told, and which operands are bound");

  const Pass no_heads{program, 0, 1, 0, 0, 0, 0};
  std::fill_n(machine.words(), 16, 77u);
  machine.device->wait(machine.submit(std::span(&no_heads, 1)), kLong);
  check(machine.words()[1] == 1 && machine.words()[9] == 77,
        "a command over no rows is not launched");

  // The same program twice in a submission: each pass has a range of its own.
  const std::array<Pass, 2> twice{{{program, 0, 1, 0, 1, 0, 0}, {program, 7, 1, 9, 1, 0, 0}}};
  machine.device->wait(machine.submit(twice), kLong);
  check(machine.words()[0] == 7 && machine.words()[8] == 9, "the last pass came last");
  check(machine.device->wait(machine.submit({}, 2), kLong).steps_done == 2,
        "no passes are nothing to do");
  check(machine.run(machine.compile({}), 3).steps_done == 3, "and neither are no commands");
}

void test_submissions_in_flight() {
  ToyMachine machine;
  const Program program = machine.compile({{&kAppend, {1, 1}}});
  Ticket last = 0;
  {
    const ClosedGate gate;
    last = submit_three(machine, program);
    const Outcome none = machine.device->wait(last, milliseconds(20));
    check(!none.finished, "a time-out comes when the GPU stands still");
    check(!machine.device->wait(last, milliseconds(0)).finished, "also one of nothing");
  }
  check_three(machine, last, milliseconds::max());
  for (int i = 0; i < 100; ++i) machine.run(program);
  check(machine.words()[100] == 106, "many submissions reuse the staging memory");
}

void test_copies() {
  ToyMachine machine;
  check_copies_between_submissions(machine, machine.compile({{&kAppend, {1, 1}}}));
}

// The list that steps of one row leave, at once or one by one, recorded or not.
std::vector<uint32_t> list_after(const char* encoding, uint32_t n_submissions, uint32_t steps) {
  const Environment variable("AKUNU_METAL_ENCODING", encoding);
  ToyMachine machine;
  check(contains(machine.device->chip().reason, encoding), "the chip says how steps are encoded");
  const std::array<Pass, 2> passes{
      ToyMachine::pass_over(machine.compile(
          {{&kAppend, {1, 3}}, {&kThroughWorkspace, {64, 2, 200}, -1}, {&kAdd, {1, 1}, 0}})),
      ToyMachine::pass_over(machine.compile({{&kSum, {3, 50}}, {&kAppend, {1, 1}, 0}}))};
  Ticket last = 0;
  for (uint32_t i = 0; i < n_submissions; ++i) last = machine.submit(passes, steps);
  check(machine.device->wait(last, kLong).finished, "a chain is done");
  return {machine.words(), machine.words() + ToyMachine::kDataBytes / 4};
}

void test_chains_and_recordings() {
  const std::vector<uint32_t> expected = list_after("plain", 8, 1);
  check(expected[100] == 16 && expected[101] != expected[116], "sixteen entries, not all the same");
  check(list_after("plain", 1, 8) == expected, "a chain of 8 steps is 8 single steps");
  check(list_after("indirect", 8, 1) == expected, "a recorded step is the step");
  check(list_after("indirect", 1, 8) == expected, "so is a chain of recorded steps");
  check(list_after("indirect", 2, 4) == expected, "and two of them");

  const Environment variable("AKUNU_METAL_ENCODING", "sometimes");
  check(contains(message_of<ArgumentError>([] { create_metal_device({}); }), "plain or indirect"),
        "another encoding is refused");
}

// A larger program makes the workspace grow; what was recorded before must not keep the old one.
void test_workspace_grows_under_recordings() {
  ToyMachine machine;
  const Program small = machine.compile({{&kThroughWorkspace, {10, 1, 0}}});
  machine.run(small);
  const Program large = machine.compile({{&kThroughWorkspace, {2000, 1, 0}}});
  machine.run(large);
  machine.run(small);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < 2000; ++i)
    wrong += machine.words()[i] != 1999 - i + (i < 10 ? 2 * (9 - i) : 0);
  check(wrong == 0, "both programs count once per run");
}

void test_statuses() {
  ToyMachine machine;
  const Program program = machine.compile(
      {{&kAdd, {1, 1}}, {&kComplain, {3, 2, 0, 3}, 0}, {&kComplain, {1, 6, 0, 4}, 0}});
  const Pass pass = ToyMachine::pass_over(program, 8);
  const auto bad_rows = [](const Outcome& outcome) {
    std::vector<size_t> bad;
    for (size_t row = 0; row < outcome.statuses.size(); ++row)
      if (outcome.statuses[row].code == kStatusNotANumber) bad.push_back(row);
    return bad;
  };
  const Outcome outcome = machine.run(program, 10, 8);
  check(outcome.finished && outcome.steps_done == 10, "all steps of a submission run");
  check(outcome.statuses.size() == 8 && bad_rows(outcome) == std::vector<size_t>{2, 3, 4, 6},
        "every row that is wrong says so");
  check(machine.run(program, 2, 8).statuses.empty(), "the next submission is clean");
  machine.words()[0] = 2;
  const Ticket first = machine.submit(std::span(&pass, 1)),
               second = machine.submit(std::span(&pass, 1)),
               third = machine.submit(std::span(&pass, 1));
  check(machine.device->wait(third, kLong).statuses.empty() &&
            bad_rows(machine.device->wait(first, kLong)) == std::vector<size_t>{2, 3, 4} &&
            bad_rows(machine.device->wait(second, kLong)) == std::vector<size_t>{6},
        "each submission in flight has statuses of its own");
}

void test_failure(const char* encoding, std::string_view label) {
  const Environment variable("AKUNU_METAL_ENCODING", encoding);
  ToyMachine machine("plain");
  const Program program =
      machine.compile({{&kAdd, {1, 1}}, {&kStumble, {1, 0, 0, 2}, 0}, {&kAdd, {1, 1, 9}, 1}});
  const Pass pass = ToyMachine::pass_over(program);
  const Ticket good = machine.submit(std::span(&pass, 1)),
               bad = machine.submit(std::span(&pass, 1)),
               behind = machine.submit(std::span(&pass, 1));
  check(machine.device->wait(good, kLong).finished,
        "the submission before the failing one is well");
  const std::string message = message_of<DeviceError>([&] { machine.device->wait(behind, kLong); });
  check(contains(message, "the GPU failed in " + std::string(label)) &&
            contains(message, "toy_stumble") && contains(message, "load the model again"),
        "a failure names the command: " + message);
  check(contains(message_of<DeviceError>([&] { machine.device->wait(bad, kLong); }), "toy_stumble"),
        "also to who asks again");
  check(machine.device->wait(good, kLong).finished, "what was done before stays done");
  check(
      contains(message_of<DeviceError>([&] { machine.run(program); }), "an earlier command failed"),
      "and nothing runs after it");
}

void test_mistakes_are_named() {
  ToyMachine machine;
  Device& device = *machine.device;
  const auto argument_error = [](auto&& run, std::string_view part) {
    const std::string message = message_of<ArgumentError>(run);
    check(contains(message, part), "\"" + message + "\" says: " + std::string(part));
  };
  const auto device_error = [](auto&& run, std::string_view part) {
    const std::string message = message_of<DeviceError>(run);
    check(contains(message, part), "\"" + message + "\" says: " + std::string(part));
  };
  const Pass pass = ToyMachine::pass_over(machine.compile({{&kAdd, {1, 1}}}));
  const std::array<Pass, 1> passes{pass};
  argument_error([&] { machine.submit(std::vector<Pass>(4, pass)); }, "4 passes, the limit is 3");
  std::vector<Row> rows(ToyMachine::kRows + 1);
  argument_error([&] { device.submit({1, rows, {}, {}, passes}); }, "33 rows, the limit is 32");
  const std::array<std::byte, 80> bytes{};
  const Update odd{machine.data.binding(2), std::span(bytes).first(4)};
  argument_error([&] { machine.submit(passes, 1, std::span(&odd, 1)); }, "whole words");
  argument_error([&] { device.wait(1, kLong); }, "never given out");
  argument_error([&] { machine.compile({{&kAdd, {1}, 0}}); }, "not an earlier one");
  argument_error([&] { machine.compile({{nullptr, {1}, -1}}); }, "no pipeline");
  const std::string missing =
      message_of<UnsupportedModelError>([&] { machine.compile({{&kMissing, {1}, -1}}); });
  check(contains(missing, "toy_missing"), missing);
  device_error([&] { machine.run(machine.compile({{&kTooManyThreads, {1}, -1}})); },
               "2048 threads per threadgroup; this GPU can run it with 1024");
  check(machine.run(pass.program).finished, "a submission that was refused leaves nothing behind");

  Ticket ticket = 0;
  for (int i = 0; i < 8; ++i) ticket = machine.submit(passes);
  device_error([&] { machine.submit(passes); }, "8 submissions are in flight");
  device_error([&] { device.write(machine.data.binding(), bytes); }, "in flight");
  device_error([&] { static_cast<void>(device.profile({})); }, "needs the device alone");
  device.wait(ticket, kLong);
  device.write(machine.data.binding(), bytes);
  argument_error([] { create_metal_device({.isa = "avx2"}); }, "not one of plain, checked");
}

void test_profile() {
  ToyMachine machine;
  const Pass pass =
      ToyMachine::pass_over(machine.compile({{&kAppend, {1, 1}}, {&kAdd, {1, 1}, 0}}));
  Replay replay;
  replay.steps = 2;
  replay.passes = std::span(&pass, 1);
  const std::vector<CommandTime> times = machine.device->profile(replay);
  check(times.size() == 4 && times[0].label == "command 0" && times[3].label == "command 1",
        "each command of each step is timed");
  check(std::all_of(times.begin(), times.end(), [](const auto& time) { return time.seconds > 0; }),
        "and took some time");
  check(machine.words()[100] == 2 && machine.words()[0] == 2, "and ran once");
  machine.run(pass.program);
  check(machine.words()[100] == 3, "submissions go on after it");
}

void test_fork() {
  auto machine = std::make_unique<ToyMachine>();
  const Program program = machine->compile({{&kAdd, {1, 1}}});
  machine->run(program);
  const Pass pass = ToyMachine::pass_over(program);
  const Ticket ticket = machine->submit(std::span(&pass, 1));
  check_fork(std::move(machine), ticket);
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_fork();
  test_commands_wait_for_what_they_read();
  test_undeclared_dependencies_are_found();
  test_launches_of_a_command();
  test_extents();
  test_submissions_in_flight();
  test_copies();
  test_chains_and_recordings();
  test_workspace_grows_under_recordings();
  test_statuses();
  test_failure("plain", "command 1");
  test_failure("indirect", "steps");
  test_mistakes_are_named();
  test_profile();
  return summary();
}
