// Several devices as one (core/device_group.h): CPUs of this process are its ranks.
#include "core/device_group.h"

#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/kernel_params.h"
#include "registry.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

constexpr auto kLong = std::chrono::minutes(1);
constexpr uint32_t kRows = 40;

std::shared_ptr<Device> group_of(uint32_t n_ranks) {
  return create_device("cpu", {.threads = 2, .gpus = n_ranks});
}

std::vector<float> numbers(size_t n, uint32_t seed) {
  std::vector<float> made(n);
  for (float& number : made) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' LCG
    number = static_cast<float>(static_cast<int32_t>(seed >> 8)) * 1e-4f - 800.0f;
  }
  return made;
}

// Numbers that each rank has its own of: those of a vector that is split.
OwnedWeight own_numbers(const std::shared_ptr<Device>& group, const std::vector<float>& all) {
  return {group,
          {.name = "numbers",
           .format = Format::f32,
           .rows = 1,
           .k = all.size(),
           .parts = {{{.bytes = std::as_bytes(std::span(all))}}},
           .split = Split::columns}};
}

struct Steps {
  explicit Steps(const std::shared_ptr<Device>& device)
      : rows(device, kRows * sizeof(Row), "rows"),
        spans(device, kRows * sizeof(Span), "spans"),
        pages(device, 64, "pages"),
        sequences(device, sizeof(SequenceRecord), "sequences"),
        statuses(device, kRows * sizeof(Status), "statuses") {
    device->set_limits(
        {.max_rows = kRows, .max_updates = 4, .max_update_bytes = 64, .max_passes = 3});
  }
  StepMemory memory() const {
    return {rows.get(), spans.get(), pages.get(), sequences.get(), statuses.get()};
  }
  OwnedBuffer rows, spans, pages, sequences, statuses;
};

Command sum_of(const Device& device, Operation operation, const Binding& from, const Binding& to,
               uint32_t n) {
  KernelRequest request;
  request.operation = operation;
  Command command;
  command.operation = operation;
  command.params.set(AllReduceParams{n, 0, device.n_ranks(), 0});
  request.params = command.params;
  command.pipeline = device.find_kernel(request);
  command.operands[0] = from;
  command.operands[1] = to;
  command.operands[kExchangeSlot] = device.exchange();
  return command;
}

// Sums of rows of many widths, in one round and in several, step after step; and a sum of those sums, which is
// `n_ranks` times as much only where all ranks have the same.
void test_sums(uint32_t n_ranks, uint32_t n, uint32_t n_rows) {
  const std::shared_ptr<Device> group = group_of(n_ranks);
  const Steps steps(group);
  const size_t size = size_t{n} * kRows;
  const std::vector<float> all = numbers(size * n_ranks, n + n_ranks);
  const OwnedWeight own = own_numbers(group, all);
  const OwnedBuffer sums(group, size * sizeof(float), "sums"),
      added(group, size * sizeof(float), "added");
  const Program program = [&] {
    DispatchTable table;
    table.commands = {
        sum_of(*group, Operation::all_reduce, own.get().planes[0], sums.binding(), n),
        sum_of(*group, Operation::all_reduce_add, sums.binding(), added.binding(), n)};
    table.labels = {"sum", "sum of sums"};
    table.waits_for = {-1, 0};
    return group->compile(std::move(table), steps.memory());
  }();
  const uint32_t first = kRows - n_rows;
  const Pass pass{program, first, n_rows, 0, 0, 0, 0};
  constexpr uint32_t kSteps = 3;
  Replay replay;
  replay.steps = kSteps;
  replay.passes = {&pass, 1};
  const Outcome outcome = group->wait(group->submit(replay), kLong);
  check(outcome.finished && outcome.steps_done == kSteps, "the steps end");

  std::vector<float> got(size), got_added(size);
  group->read(sums.binding(), std::as_writable_bytes(std::span(got)));
  group->read(added.binding(), std::as_writable_bytes(std::span(got_added)));
  bool is_right = true, is_added = true, is_left = true;
  for (size_t i = 0; i < size; ++i) {
    if (i < size_t{first} * n) {
      is_left &= got[i] == 0 && got_added[i] == 0;
      continue;
    }
    float sum = all[i];
    for (uint32_t rank = 1; rank < n_ranks; ++rank) sum += all[rank * size + i];
    float total = 0;
    for (uint32_t step = 0; step < kSteps; ++step) {
      float of_sums = sum;
      for (uint32_t rank = 1; rank < n_ranks; ++rank) of_sums += sum;
      total += of_sums;
    }
    is_right &= got[i] == sum;
    is_added &= got_added[i] == total;
  }
  const std::string what = std::to_string(n_ranks) + " ranks, " + std::to_string(n_rows) +
                           " rows of " + std::to_string(n);
  check(is_right, "sums in the order of the ranks: " + what);
  check(is_added, "all ranks have the same: " + what);
  check(is_left, "other rows stay as they are: " + what);
  group->release_program(program);
}

// What is read of a weight is the first rank's share.
void test_shares() {
  const std::shared_ptr<Device> group = group_of(2);
  // Q4_0: 2 matrices of 4 rows of 64 numbers, of 18 bytes a block.
  std::vector<std::byte> bytes(size_t{2} * 4 * 2 * 18);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const auto first_share = [&](Split split, uint64_t n_matrices, uint64_t rows, uint64_t k) {
    const OwnedWeight weight(group, {.name = "w",
                                     .format = Format::q4_0,
                                     .rows = 8,
                                     .k = 64,
                                     .parts = {{{.bytes = bytes}}},
                                     .split = split,
                                     .n_matrices = n_matrices});
    check(weight.get().rows == rows && weight.get().k == k, "the share's shape");
    std::vector<std::byte> share(rows * k / 32 * 18);
    group->read(weight.get().planes[0], share);
    return share;
  };
  const auto is_at = [&](const std::vector<std::byte>& share, size_t at, size_t from, size_t n) {
    return std::memcmp(share.data() + at, bytes.data() + from, n) == 0;
  };
  const std::vector<std::byte> whole = first_share(Split::none, 1, 8, 64);
  check(whole == bytes, "what is not split lies on all ranks");
  const std::vector<std::byte> rows = first_share(Split::rows, 1, 4, 64);
  check(is_at(rows, 0, 0, 4 * 36), "the first half of the rows");
  const std::vector<std::byte> stacked = first_share(Split::rows, 2, 4, 64);
  check(is_at(stacked, 0, 0, 2 * 36) && is_at(stacked, 2 * 36, 4 * 36, 2 * 36),
        "the first half of each matrix's rows");
  const std::vector<std::byte> columns = first_share(Split::columns, 1, 8, 32);
  bool is_half = true;
  for (size_t row = 0; row < 8; ++row) is_half &= is_at(columns, row * 18, row * 36, 18);
  check(is_half, "the first block of each row");

  const std::string message = message_of<UnsupportedModelError>([&] {
    const OwnedWeight odd(group, {.name = "odd",
                                  .format = Format::q4_0,
                                  .rows = 8,
                                  .k = 32,
                                  .parts = {{{.bytes = std::span(bytes).first(8 * 18)}}},
                                  .split = Split::columns});
  });
  check(contains(message, "odd has 1 blocks in a row") && contains(message, "2 GPUs"), message);
}

void test_memory() {
  const std::shared_ptr<Device> group = group_of(2);
  const OwnedBuffer buffer(group, 1000, "things");
  bool is_counted = false;
  for (const MemoryUse& use : group->memory_use())
    is_counted |= use.label == "things, on each of 2" && use.bytes == 1000;
  check(is_counted, "memory is that of each rank");
  check(group->chip().name.starts_with("2 x "), "what the chip is");
  check(contains(message_of<ArgumentError>([] { group_of(9); }), "gpus must be 1 to 8"),
        "too many");
}

void test_updates_and_copies() {
  const std::shared_ptr<Device> group = group_of(3);
  const Steps steps(group);
  const std::vector<float> all(3 * 8, 2.0f);
  const OwnedWeight own = own_numbers(group, all);
  const OwnedBuffer data(group, 64, "data"), moved(group, 64, "moved"), sum(group, 64, "sum");
  DispatchTable table;
  table.commands = {sum_of(*group, Operation::all_reduce, moved.binding(), sum.binding(), 8)};
  table.labels = {"sum"};
  table.waits_for = {-1};
  const Program program = group->compile(std::move(table), steps.memory());
  const std::vector<float> wanted = numbers(8, 3);
  group->write(data.binding(), std::as_bytes(std::span(wanted)));
  const Copy copy{data.binding(), moved.binding(), 32};
  group->copy({&copy, 1});
  const float changed = 7.0f;
  const Update update{moved.binding(4), std::as_bytes(std::span(&changed, 1))};
  const Pass pass{program, 0, 1, 0, 0, 0, 0};
  Replay replay;
  replay.updates = {&update, 1};
  replay.passes = {&pass, 1};
  check(group->wait(group->submit(replay), kLong).finished, "a step with an update");
  std::vector<float> got(8);
  group->read(sum.binding(), std::as_writable_bytes(std::span(got)));
  bool is_right = true;
  for (size_t i = 0; i < 8; ++i) {
    const float each = i == 1 ? changed : wanted[i];
    is_right &= got[i] == (each + each) + each;
  }
  check(is_right, "writes, copies and updates are done on all ranks");
  const std::vector<CommandTime> times = group->profile(replay);
  check(times.size() == 1 && times[0].label == "sum", "all ranks are profiled together");
  group->release_program(program);
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  for (const uint32_t n_ranks : {2u, 3u, 8u})
    for (const uint32_t n : {2u, 96u, 1000u})
      for (const uint32_t n_rows : {1u, 40u}) test_sums(n_ranks, n, n_rows);
  test_shares();
  test_memory();
  test_updates_and_copies();
  return summary();
}
