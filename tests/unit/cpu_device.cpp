// The CPU device without its kernels: the order of commands, every slice exactly once, time-outs,
// status, fork, limits, memory. Runs plain and under ASan, UBSan and TSan.
#include "cpu/cpu_device.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "core/error.h"
#include "registry.h"
#include "unit/allocation_hook.h"
#include "unit/check.h"
#include "unit/toy_kernels.h"

namespace akunu::test {
namespace {

using cpu::Call;
using cpu::Kernel;
using std::chrono::milliseconds;

// Counts each slice in a plain integer of its own: a slice that ran twice at once is a race.
void count_slices(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
  auto* counts = reinterpret_cast<uint32_t*>(call.operands[0]) + toy(call).value;
  for (uint64_t i = begin; i < end; ++i) ++counts[i];
}
constexpr Kernel kCount{toy_slices, count_slices, nullptr};

void test_every_slice_runs_once(uint32_t threads) {
  ToyMachine machine(threads);
  constexpr std::array<uint32_t, 4> kSlices{1, 7, 64, 999};
  // The first two share memory, so the second waits; the others may overlap with them.
  const Program program = machine.compile({{&kCount, {kSlices[0], 0}, -1},
                                           {&kCount, {kSlices[1], 0}, 0},
                                           {&kCount, {kSlices[2], 100}, -1},
                                           {&kCount, {kSlices[3], 1000}, -1}});
  constexpr uint32_t kSubmissions = 10'000;
  for (uint32_t i = 0; i < kSubmissions; ++i) machine.run(program);
  const uint32_t* counts = machine.words();
  const auto all = [&](uint32_t first, uint32_t n, uint32_t expected) {
    return std::all_of(counts + first, counts + first + n,
                       [&](uint32_t count) { return count == expected; });
  };
  const std::string with = " with " + std::to_string(threads) + " threads";
  check(all(0, 1, 2 * kSubmissions), "slice 0 of two commands runs once per command" + with);
  check(all(1, 6, kSubmissions), "each of 7 slices runs once per submission" + with);
  check(all(7, 93, 0), "no slice runs beyond the last" + with);
  check(all(100, 64, kSubmissions), "each of 64 slices runs once per submission" + with);
  check(all(1000, 999, kSubmissions), "each of 999 slices runs once per submission" + with);
}

// Slice i adds up what the command before wrote, in plain memory, and stores the sum.
void fill(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
  auto* values = reinterpret_cast<uint32_t*>(call.operands[0]);
  for (uint64_t i = begin; i < end; ++i) values[i] += toy(call).value;
}
void sum_all(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
  auto* values = reinterpret_cast<uint32_t*>(call.operands[0]);
  for (uint64_t i = begin; i < end; ++i) {
    uint32_t sum = 0;
    for (uint32_t j = 0; j < toy(call).value; ++j) sum += values[j];
    values[1000 + i] = sum;
  }
}
constexpr Kernel kFill{toy_slices, fill, nullptr};
constexpr Kernel kSumAll{toy_slices, sum_all, nullptr};

void test_commands_wait_for_what_they_read(uint32_t threads) {
  ToyMachine machine(threads);
  const Program program =
      machine.compile({{&kFill, {300, 1}, -1}, {&kSumAll, {50, 300}, 0}, {&kFill, {300, 2}, 1}});
  uint32_t wrong = 0;
  for (uint32_t round = 0; round < 2000; ++round) {
    machine.run(program);
    const uint32_t expected = 300 * (3 * round + 1);
    for (uint32_t i = 0; i < 50; ++i) wrong += machine.words()[1000 + i] != expected;
  }
  check(
      wrong == 0,
      "a command sees all of the command that it waits for, none of those that wait for it, with " +
          std::to_string(threads) + " threads");
}

// Command "meet" waits, in its only slice, until the other's only slice has begun.
void meet(const Call& call, uint64_t, uint64_t, std::byte*) {
  auto* words = reinterpret_cast<uint32_t*>(call.operands[0]);
  const std::atomic_ref<uint32_t> mine(words[toy(call).value]), other(words[1 - toy(call).value]);
  mine.store(1);
  const auto deadline = std::chrono::steady_clock::now() + milliseconds(toy(call).milliseconds);
  while (other.load() == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  words[2 + toy(call).value] = other.load();
}
constexpr Kernel kMeet{toy_slices, meet, nullptr};

void test_independent_commands_overlap() {
  {
    ToyMachine machine(2);
    machine.run(
        machine.compile({{&kMeet, {1, 0, 0, 20'000}, -1}, {&kMeet, {1, 1, 0, 20'000}, -1}}));
    check(machine.words()[2] == 1 && machine.words()[3] == 1,
          "commands that wait for nothing run at the same time");
  }
  ToyMachine machine(2);
  machine.run(machine.compile({{&kMeet, {1, 0, 0, 50}, -1}, {&kMeet, {1, 1, 0, 50}, 0}}));
  check(machine.words()[2] == 0, "a command that waits for another does not begin before it ends");

  // Two passes of one submission, which share memory that the table knows nothing about.
  ToyMachine passes(2);
  const std::array<Pass, 2> both{
      ToyMachine::pass_over(passes.compile({{&kMeet, {1, 0, 0, 50}, -1}})),
      ToyMachine::pass_over(passes.compile({{&kMeet, {1, 1, 0, 50}, -1}}))};
  passes.device->wait(passes.submit(both), kLong);
  check(passes.words()[2] == 0 && passes.words()[3] == 1,
        "a pass does not begin before the one ahead of it ends");
}

// Appends the parameter's value and word 0 to a list: [100] holds its length.
void append(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
  auto* words = reinterpret_cast<uint32_t*>(call.operands[0]);
  for (uint64_t i = begin; i < end; ++i)
    words[101 + words[100]++] = words[0] * 100 + call.rows[0].position;
  call.rows[0].position += toy(call).value;
}
constexpr Kernel kAppend{toy_slices, append, nullptr};

void test_submissions_run_in_order() {
  ToyMachine machine(2);
  const Ticket last = submit_three(machine, machine.compile({{&kAppend, {1, 1}, -1}}));
  check(machine.words()[100] == 0, "nothing runs before wait");
  check_three(machine, last, kLong);
}

void test_copies() {
  ToyMachine machine(2);
  check_copies_between_submissions(machine, machine.compile({{&kAppend, {1, 1}, -1}}));
}

void nap(const Call& call, uint64_t, uint64_t, std::byte*) {
  std::this_thread::sleep_for(milliseconds(toy(call).milliseconds));
  ++*reinterpret_cast<uint32_t*>(call.operands[0]);
}
constexpr Kernel kNap{toy_slices, nap, nullptr};

void test_time_out() {
  ToyMachine machine(2);
  const Pass pass = ToyMachine::pass_over(machine.compile({{&kNap, {1, 0, 0, 10}, -1}}));
  const Ticket ticket = machine.submit(std::span(&pass, 1), 20);
  const Ticket next = machine.submit(std::span(&pass, 1), 1);
  const Outcome none = machine.device->wait(ticket, milliseconds(0));
  check(!none.finished && none.steps_done == 1, "a time-out of nothing leaves room for one step");
  const Outcome some = machine.device->wait(ticket, milliseconds(45));
  check(!some.finished && some.steps_done > 1 && some.steps_done < 20,
        "a time-out comes between steps");
  const Outcome later = machine.device->wait(next, milliseconds(0));
  check(!later.finished && later.steps_done == 0, "a later submission waits for the earlier one");
  const Outcome all = machine.device->wait(ticket, kLong);
  check(all.finished && all.steps_done == 20, "another wait goes on where the first stopped");
  check(*machine.words() == 20, "every step ran once");
  check(machine.device->wait(next, milliseconds::max()).finished, "the longest time-out is one");
}

// Says that the row of its slice is wrong where word 0 is what the parameters say.
void complain(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
  for (uint64_t i = begin; i < end; ++i)
    if (toy(call).value == reinterpret_cast<uint32_t*>(call.operands[0])[0])
      cpu::record_status(call, toy(call).scratch_bytes + i, kStatusNotANumber,
                         static_cast<uint32_t>(i));
}
constexpr Kernel kComplain{toy_slices, complain, nullptr};
constexpr Kernel kBump{toy_slices,
                       [](const Call& call, uint64_t, uint64_t, std::byte*) {
                         ++*reinterpret_cast<uint32_t*>(call.operands[0]);
                       },
                       nullptr};

void test_statuses(uint32_t threads) {
  ToyMachine machine(threads);
  // In the step that finds a 3, rows 2 to 5 are wrong, in that which finds a 5 rows 4 to 7.
  const Pass pass = ToyMachine::pass_over(
      machine.compile({{&kBump, {1}, -1}, {&kComplain, {4, 3, 2}, 0}, {&kComplain, {4, 5, 4}, 0}}),
      8);
  std::array<Row, 9> rows{};
  for (uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].position = 10 + i;
    rows[i].flags = i == 6 ? kRowChained : kRowActive | kRowChained;
  }
  const Outcome outcome =
      machine.device->wait(machine.submit(std::span(&pass, 1), 10, {}, rows), kLong);
  check(outcome.finished && outcome.steps_done == 10 && *machine.words() == 10,
        "all steps run, whatever is recorded");
  check(outcome.statuses.size() == 8, "there is a status for each row that was covered");
  const auto* kept = reinterpret_cast<const Row*>(machine.rows.get().contents);
  for (uint32_t i = 0; i < 8; ++i) {
    const Status& status = outcome.statuses[i];
    const bool is_bad = i >= 2 && i != 6;
    check(status.code == (is_bad ? kStatusNotANumber : kStatusOk), "a row that is active says so");
    check(!is_bad || (status.position == 10 + i && status.detail == (i < 6 ? i - 2 : i - 4)),
          "the first that is wrong with a row stays");
    check(((kept[i].flags & kRowActive) != 0) == (i < 2), "and switches it off");
  }
  const Outcome next = machine.device->wait(machine.submit(std::span(&pass, 1), 2), kLong);
  check(next.steps_done == 2 && next.statuses.empty(), "the next submission is clean");
  check(outcome.statuses[2].code == kStatusNotANumber, "what is remembered stays");
}

void note_extent(const Call& call, uint64_t, uint64_t, std::byte*) {
  auto* words = reinterpret_cast<uint32_t*>(call.operands[0]) + toy(call).value;
  words[0] = call.first_row;
  words[1] = call.n_rows;
  words[2] = call.first_span;
  words[3] = call.n_spans;
}
constexpr Kernel kNoteExtent{toy_slices, note_extent, nullptr};

void test_extents() {
  ToyMachine machine(1);
  const Program program = machine.compile(
      {{&kNoteExtent, {1, 0}, -1, Extent::rows}, {&kNoteExtent, {1, 4}, -1, Extent::head_rows}});
  const Pass pass{program, 2, 5, 1, 3, 4, 6};
  machine.device->wait(machine.submit(std::span(&pass, 1)), kLong);
  constexpr std::array<uint32_t, 8> kExpected{2, 5, 4, 6, 1, 3, 4, 6};
  check(std::equal(kExpected.begin(), kExpected.end(), machine.words()),
        "rows and head rows are told apart, spans are given to both");

  const Pass no_heads{program, 0, 1, 0, 0, 0, 0};
  std::fill_n(machine.words(), 8, 77u);
  machine.device->wait(machine.submit(std::span(&no_heads, 1)), kLong);
  check(machine.words()[1] == 1 && machine.words()[5] == 77,
        "a command over no rows is not called");

  const Program zero = machine.compile({{&kNoteExtent, {0, 0}, -1}, {&kNoteExtent, {0, 0}, 0}});
  const Program empty = machine.compile({});
  check(machine.run(zero).finished && machine.run(empty, 3).steps_done == 3,
        "no slices, and no commands, are nothing to do");
  check(machine.device->wait(machine.submit({}, 2), kLong).steps_done == 2,
        "and neither are no passes");
}

void use_scratch(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
  auto* counts = reinterpret_cast<uint32_t*>(call.operands[0]);
  for (uint64_t i = begin; i < end; ++i) {
    std::memset(scratch, static_cast<int>(i & 0xff), toy(call).scratch_bytes);
    std::this_thread::yield();
    const bool mine = std::all_of(scratch, scratch + toy(call).scratch_bytes, [&](std::byte value) {
      return value == static_cast<std::byte>(i & 0xff);
    });
    counts[i] += mine && reinterpret_cast<uintptr_t>(scratch) % 64 == 0;
  }
}
constexpr Kernel kUseScratch{toy_slices, use_scratch, toy_scratch};

void test_scratch() {
  ToyMachine machine(3);
  machine.run(machine.compile({{&kUseScratch, {200, 0, 1000}, -1}}));
  machine.run(machine.compile({{&kUseScratch, {200, 0, 5001}, -1}}));
  const uint32_t* counts = machine.words();
  check(std::all_of(counts, counts + 200, [](uint32_t count) { return count == 2; }),
        "every worker has aligned scratch of its own, as much as the largest command asks for");
}

void test_no_allocation(uint32_t threads) {
  ToyMachine machine(threads);
  const std::array<Pass, 3> passes{
      ToyMachine::pass_over(machine.compile({{&kUseScratch, {20, 0, 64}, -1}, {&kBump, {1}, 0}})),
      ToyMachine::pass_over(machine.compile({{&kBump, {1}, -1}})),
      ToyMachine::pass_over(machine.compile({{&kBump, {1}, -1}, {&kComplain, {4, 40}, 0}}))};
  std::array<Row, ToyMachine::kRows> rows{};
  std::array<Span, ToyMachine::kRows> spans{};
  const std::array<std::byte, 16> bytes{};
  const Update update{machine.data.binding(64), bytes};
  const std::array<Update, 4> updates{update, update, update, update};
  const Replay replay{3, rows, spans, updates, passes};
  const long n = count_allocations([&] {
    for (int i = 0; i < 100; ++i) {
      machine.device->submit(replay);
      machine.device->wait(machine.device->submit(replay), kLong);
    }
  });
  check(n == 0, "submit and wait allocate nothing, with " + std::to_string(threads) + " threads");
  check(count_allocations([] { std::free(std::malloc(8)); }) == 1 || n == 0, "the hook counts");
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void test_idle_helpers_sleep() {
  ToyMachine machine(2);
  const Program program = machine.compile({{&kBump, {1}, -1}});
  machine.run(program);
  std::this_thread::sleep_for(milliseconds(100));
  const double before = processor_seconds();
  std::this_thread::sleep_for(milliseconds(500));
  const double spent = processor_seconds() - before;
  check(spent < 0.05,
        "half a second of idleness costs " + std::to_string(spent) + " s of processor time");
  check(machine.run(program).finished, "and they wake up again");
}

void test_fork(bool with_helpers) {
  auto machine = std::make_unique<ToyMachine>(2);
  Ticket ticket = 0;
  if (with_helpers) {
    const Program program = machine->compile({{&kBump, {1}, -1}});
    machine->run(program);
    const Pass pass = ToyMachine::pass_over(program);
    ticket = machine->submit(std::span(&pass, 1));
  }
  check_fork(std::move(machine), ticket, with_helpers ? "" : ", also without helpers");
}

void test_mistakes_are_named() {
  ToyMachine machine(1);
  Device& device = *machine.device;
  const auto argument_error = [](auto&& run, std::string_view part, std::string_view what) {
    const std::string message = message_of<ArgumentError>(run);
    check(contains(message, part), std::string(what) + ": \"" + message + "\"");
  };
  const auto device_error = [](auto&& run, std::string_view part, std::string_view what) {
    const std::string message = message_of<DeviceError>(run);
    check(contains(message, part), std::string(what) + ": \"" + message + "\"");
  };
  const Pass pass = ToyMachine::pass_over(machine.compile({{&kBump, {1}, -1}}));
  const std::array<Pass, 1> passes{pass};
  argument_error([&] { machine.submit(std::vector<Pass>(4, pass)); }, "4 passes, the limit is 3",
                 "passes");
  std::vector<Row> rows(ToyMachine::kRows + 1);
  argument_error([&] { device.submit({1, rows, {}, {}, passes}); }, "33 rows, the limit is 32",
                 "rows");
  argument_error([&] { device.submit({1, std::span(rows).first(2), {}, {}, {}}); }, "no pass",
                 "rows without pass");
  const std::array<Pass, 1> too_far{ToyMachine::pass_over(pass.program, ToyMachine::kRows + 1)};
  argument_error([&] { machine.submit(too_far); }, "33 rows in a pass", "rows of a pass");
  const std::array<std::byte, 80> bytes{};
  const Update outside{machine.data.binding(ToyMachine::kDataBytes - 8),
                       std::span(bytes).first(16)};
  argument_error([&] { machine.submit(passes, 1, std::span(&outside, 1)); }, "leaves its buffer",
                 "update");
  const Update large{machine.data.binding(), bytes};
  argument_error([&] { machine.submit(passes, 1, std::span(&large, 1)); },
                 "80 update bytes, the limit is 64", "bytes");
  argument_error([&] { device.wait(1, kLong); }, "never given out", "ticket");
  argument_error([&] { machine.compile({{&kBump, {1}, 0}}); }, "not an earlier one",
                 "a command that waits for itself");
  argument_error([&] { machine.compile({{nullptr, {1}, -1}}); }, "no pipeline", "pipeline");
  argument_error(
      [&] {
        device.write(machine.data.binding(ToyMachine::kDataBytes - 1), std::span(bytes).first(2));
      },
      "leaves the buffer", "write");

  Ticket ticket = 0;
  for (int i = 0; i < 8; ++i) ticket = machine.submit(passes);
  device_error([&] { machine.submit(passes); }, "8 submissions are in flight", "a full queue");
  device_error([&] { device.write(machine.data.binding(), bytes); }, "in flight",
               "write in flight");
  device.wait(ticket, kLong);
  device.write(machine.data.binding(), bytes);
  for (int i = 0; i < 8; ++i) device.wait(machine.submit(passes), kLong);
  argument_error([&] { device.wait(ticket, kLong); }, "no longer kept", "an old ticket");

  argument_error([] { create_device("abacus"); }, "known are auto, ", "unknown device");
  argument_error([] { create_device("cpu", {.threads = 257}); }, "256 or fewer",
                 "too many threads");
  argument_error([] { create_device("cpu", {.isa = "sse9"}); }, "not one of generic",
                 "unknown level");
  check(create_device("cpu", {.threads = 3})->chip().workers == 3,
        "threads asked for are threads given");
  check(create_device("cpu")->chip().workers >= 1, "there is a number of threads without asking");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  // First, while there is one thread only: sanitizers want it so.
  test_fork(false);
  test_fork(true);
  for (const uint32_t threads : {1u, 2u, 3u}) {
    test_every_slice_runs_once(threads);
    test_commands_wait_for_what_they_read(threads);
    test_statuses(threads);
    test_no_allocation(threads);
  }
  test_independent_commands_overlap();
  test_submissions_run_in_order();
  test_copies();
  test_time_out();
  test_extents();
  test_scratch();
  test_idle_helpers_sleep();
  test_mistakes_are_named();
  return summary();
}
