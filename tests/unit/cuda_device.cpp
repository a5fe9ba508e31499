// The host code of the device cuda over a stand-in for the driver: memory, order, graphs, failures and
// the words for them. Kernels are functions of this file.
#include "cuda/cuda_device.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "core/device_group.h"
#include "core/kernel_params.h"
#include "cuda/modules.h"
#include "cuda/program.h"
#include "unit/check.h"
#include "unit/cuda_stub.h"
#include "unit/toy_machine.h"

namespace akunu::test {
namespace {

using cuda::Arguments;
using metal::Grid;
using metal::Kernel;
using metal::Scope;
using std::chrono::milliseconds;

struct ToyParams {
  uint32_t n = 1;
  uint32_t value = 0;
  uint32_t padding[2] = {};
};

template <class T>
T* slot(const Arguments& arguments, uint32_t index) {
  return reinterpret_cast<T*>(arguments.slots[index]);
}

// Appends (word 0 * 100 + the position of the first row) to the list at word 101, and moves the row on.
void append(const Arguments& arguments, uint32_t) {
  auto* words = slot<uint32_t>(arguments, 0);
  auto* rows = slot<Row>(arguments, kSlotRows);
  Row& row = rows[arguments.pass.first_row];
  words[101 + words[100]++] = words[0] * 100 + row.position;
  ++row.position;
}
// Word 50 counts the rows of the pass, word 51 blocks, 52 and 53 are the constants, 54 and 55 the offsets.
void note(const Arguments& arguments, uint32_t blocks) {
  auto* words = slot<uint32_t>(arguments, 0);
  words[50] += arguments.pass.n_rows;
  words[51] += blocks;
  words[52] = arguments.constants[0];
  words[53] = arguments.constants[3];
  words[54] = arguments.shared_offset[1];
  words[55] = arguments.params.get<ToyParams>().value;
  words[56] = arguments.slots[kSlotWorkspace] != 0;
}
// Word 60 is the weight's first word, words 61 and 62 the halves of its address.
void read_weight(const Arguments& arguments, uint32_t) {
  auto* words = slot<uint32_t>(arguments, 0);
  words[60] = *slot<uint32_t>(arguments, 1);
  words[61] = static_cast<uint32_t>(arguments.slots[1]);
  words[62] = static_cast<uint32_t>(arguments.slots[1] >> 32);
}
void complain(const Arguments& arguments, uint32_t) {
  slot<Status>(arguments, kSlotStatuses)[0] = {kStatusNotANumber, 7, 0, 0};
}

void note_ranks(const Arguments& arguments, uint32_t blocks);

constexpr StubKernel kFirst[] = {
    {"akunu_append", append}, {"akunu_all_reduce", note_ranks}, {nullptr, nullptr}};
constexpr StubKernel kSecond[] = {{"akunu_note", note},
                                  {"akunu_read_weight", read_weight},
                                  {"akunu_complain", complain},
                                  {nullptr, nullptr}};

const StubControls& stub() {
  static const StubControls* controls = [] {
    void* library = dlopen(std::getenv("AKUNU_CUDA_DRIVER"), RTLD_NOW);
    using Get = const StubControls* (*)();
    return reinterpret_cast<Get>(dlsym(library, "akunu_stub_controls"))();
  }();
  return *controls;
}

// Some function of the driver fails for as long as it lives.
struct Failing {
  Failing(const char* function, int32_t result, uint32_t after = 0) {
    stub().fail(function, result, after);
  }
  ~Failing() { stub().mend(); }
};
struct ClosedGate {
  ClosedGate() { stub().open_gate(false); }
  ~ClosedGate() { stub().open_gate(true); }
};

Kernel kernel_of(const char* function, uint32_t max_rows = UINT32_MAX) {
  Kernel kernel;
  kernel.launches.push_back({
      .function = function,
      .constants = {{3, 42, false}},
      .grid =
          [](const Scope& scope) {
            return Grid{.threadgroups = {scope.n_rows, 2, 1}, .threadgroup_bytes = {48, 16}};
          },
      .max_rows = max_rows,
  });
  kernel.workspace_bytes = [](const std::byte*, uint32_t) { return uint64_t{64}; };
  return kernel;
}
const Kernel kAppend = kernel_of("append"), kNote = kernel_of("note"),
             kComplain = kernel_of("complain"), kReadWeight = kernel_of("read_weight"),
             kMissing = kernel_of("missing"), kOneRow = kernel_of("note", 1);

struct Machine : ToyMachineOf<Kernel, ToyParams> {
  Machine() : ToyMachineOf(create_cuda_device({})) {}
  // The host sees a copy.
  const uint32_t* words() const {
    copy_.resize(kDataBytes / 4);
    device->read(data.binding(), std::as_writable_bytes(std::span(copy_)));
    return copy_.data();
  }
  mutable std::vector<uint32_t> copy_;
};

void test_no_driver() {
  const std::string stand_in = std::getenv("AKUNU_CUDA_DRIVER");
  setenv("AKUNU_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  const std::string message = message_of<DeviceError>([] { create_cuda_device({}); });
  check(contains(message, "no NVIDIA driver") && contains(message, "/nowhere/libcuda.so") &&
            contains(message, "nvidia-smi"),
        "without a driver: " + message);
  check(!cuda::levels().front().is_available, "there is no such device then");
  setenv("AKUNU_CUDA_DRIVER", stand_in.c_str(), 1);
}

void test_what_gpus_are_taken() {
  cuda::forget_gpu();
  {
    const Failing failing("cuDevicePrimaryCtxRetain", 802);
    const std::string message = message_of<DeviceError>([] { create_cuda_device({}); });
    check(contains(message, "802") && contains(message, "another process uses the GPU"), message);
  }
  {
    const Failing failing("cuModuleLoadData", 209);
    const std::string message = message_of<DeviceError>([] { create_cuda_device({}); });
    check(contains(message, "first (made for sm_90a)") && contains(message, "docs/install.md"),
          "no kernels for this GPU: " + message);
  }
  stub().set_capability(75);
  const std::string message = message_of<DeviceError>([] { create_cuda_device({}); });
  check(contains(message, "Stub GPU has compute capability 7.5"), "an old GPU: " + message);
  stub().set_capability(90);
  check(cuda::levels().front().is_available, "now there is such a device");
  check(contains(message_of<ArgumentError>([] { create_cuda_device({.isa = "avx2"}); }), "avx2"),
        "an unknown level");

  const auto device = create_cuda_device({});
  check(device->backend() == "cuda" && device->chip().name == "Stub GPU" &&
            device->chip().workers == 132 && device->chip().memory_bytes == 1u << 30,
        "what the chip is");
  // Two transfers a clock over 640 bytes, for 50 ms.
  check(device->chip().max_texts == 64 && device->chip().max_mixed_rows == 512 &&
            device->chip().max_crowded_rows == device->chip().max_prompt_rows &&
            device->chip().generated_rows_per_pass == 512,
        "texts by memory, rows by multiprocessors");
  check(device->chip().chain_bytes == static_cast<uint64_t>(2.0 * 2.619e9 * 640 * 0.05),
        "a chain lasts 50 ms at most");
}

void test_memory() {
  const uint64_t before = stub().counts().allocated;
  {
    Machine machine;
    Device& device = *machine.device;
    check(machine.words()[77] == 0, "memory is zeroed");
    // More than passes at a time, and no multiple of it.
    std::vector<std::byte> bytes((20u << 20) + 12), back(bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 65536);
    const OwnedBuffer large(machine.device, bytes.size() + 4, "large");
    device.write(large.binding(4), bytes);
    device.read(large.binding(4), back);
    check(bytes == back, "what is written is read");
    const WeightSource source{"blk", Format::f32, 4, 8, {{{std::span(bytes).first(128)}}}};
    const OwnedWeight weight(machine.device, source);
    std::vector<std::byte> copied(128);
    device.read(weight.get().planes[0], copied);
    check(std::equal(copied.begin(), copied.end(), bytes.begin()), "a weight is copied");
    bool is_counted = false;
    for (const MemoryUse& use : device.memory_use())
      is_counted |= use.label == "large" && use.bytes == bytes.size() + 4 && !use.mapped;
    check(is_counted, "memory is counted by label");

    const std::string refused =
        message_of<OutOfMemoryError>([&] { device.allocate(3ull << 30, "pages"); });
    check(contains(refused, "pages needs 3072.0 MiB") && contains(refused, "available"),
          "what does not fit is refused by name: " + refused);
    const Failing failing("cuMemAlloc_v2", cuda::kOutOfMemory);
    check(contains(message_of<OutOfMemoryError>([&] { device.allocate(64, "rows"); }),
                   "the driver refused"),
          "what the driver refuses");
  }
  check(stub().counts().allocated == before, "everything is given back");
}

// A few rows read it where it lies; many read a copy on the GPU.
void test_a_weight_in_the_hosts_memory() {
  const uint64_t before = stub().counts().allocated;
  {
    Machine machine;
    const uint64_t allocated = stub().counts().allocated;
    const std::vector<uint32_t> numbers(30, 0x1234);
    const WeightSource source{.name = "blk",
                              .format = Format::f32,
                              .rows = 3,
                              .k = 10,
                              .parts = {{{.bytes = std::as_bytes(std::span(numbers))}}},
                              .in_host_memory = true};
    const OwnedWeight weight(machine.device, source);
    check(stub().counts().allocated == allocated, "none of the GPU's memory is taken");
    bool is_counted = false;
    for (const MemoryUse& use : machine.device->memory_use())
      is_counted |= contains(use.label, "host's memory") && use.bytes == 120;
    check(is_counted, "it is counted by a label of its own");
    std::vector<uint32_t> back(30);
    machine.device->read(weight.get().planes[0], std::as_writable_bytes(std::span(back)));
    check(back == numbers, "it can be read");

    const Program program =
        machine.compile({{&kReadWeight, {}, -1, Extent::rows, weight.get().planes[0]}});
    const uint64_t lies_at = cuda::address_of(weight.get().planes[0].buffer);
    const auto read_at = [&] {
      const uint32_t* words = machine.words();
      check(words[60] == 0x1234, "the weight is what was imported");
      return words[61] | uint64_t{words[62]} << 32;
    };
    machine.run(program, 1, kMaxFewRows);
    check(read_at() == lies_at, "a few rows read the host's memory");
    machine.run(program, 1, kMaxFewRows + 1);
    check(read_at() != lies_at, "many read a copy");
    machine.run(program, 2, 1);
    check(read_at() == lies_at, "a captured step, too, reads the host's memory");
  }
  check(stub().counts().allocated == before, "everything is given back");
}

void test_submissions_in_order() {
  Machine machine;
  const Program program = machine.compile({{&kAppend, {}}});
  {
    const ClosedGate gate;
    const Ticket last = submit_three(machine, program);
    check(!machine.device->wait(last, milliseconds(1)).finished, "a time-out comes first");
  }
  check_three(machine, 3, kLong);
}

void test_copies() {
  Machine machine;
  check_copies_between_submissions(machine, machine.compile({{&kAppend, {}}}));
}

void test_graphs() {
  Machine machine;
  const StubCounts before = stub().counts();
  const Program program = machine.compile({{&kNote, {1, 5, {}}}, {&kNote, {1, 6, {}}}});
  machine.run(program, 3);
  machine.run(program, 2);
  StubCounts now = stub().counts();
  check(now.captures - before.captures == 1 && now.graph_launches - before.graph_launches == 5,
        "a step is captured once and launched as often as there are steps");
  check(now.launches - before.launches == 10, "all of its commands run");
  const uint32_t* words = machine.words();
  check(words[50] == 10 && words[51] == 20, "over their rows, as large as the table says");
  check(words[52] == 3 && words[53] == 42, "bound slots and constants are told");
  check(words[54] == 48 && words[55] == 6 && words[56] == 1,
        "parts of shared memory, parameters, workspace");

  machine.run(program, 1, 2);
  check(stub().counts().captures - before.captures == 2,
        "a step of another shape is another graph");
  check(stub().counts().graphs - before.graphs == 2, "both are there");
  machine.device->release_program(program);
  check(stub().counts().graphs == before.graphs, "and go with their program");

  const Program for_one = machine.compile({{&kOneRow, {}}});
  check(contains(message_of<DeviceError>([&] { machine.run(for_one, 1, 2); }),
                 "no launch of command 0 serves 2 rows"),
        "a shape that nothing serves");
  machine.run(for_one);
  check(contains(message_of<UnsupportedModelError>([&] { machine.compile({{&kMissing, {}}}); }),
                 "the kernel missing is not in this build"),
        "a kernel that is not there");
}

void test_statuses() {
  Machine machine;
  const Program bad = machine.compile({{&kComplain, {}}}), good = machine.compile({{&kNote, {}}});
  const Outcome outcome = machine.run(bad);
  check(outcome.statuses.size() == 1 && outcome.statuses[0].code == kStatusNotANumber &&
            outcome.statuses[0].position == 7,
        "what a kernel records is in the outcome");
  check(machine.run(good).statuses.empty(), "each submission begins with clean statuses");
}

void test_a_lost_gpu() {
  Machine machine;
  const Program program = machine.compile({{&kAppend, {}}});
  const Pass pass = Machine::pass_over(program);
  const Ticket ticket = machine.submit(std::span(&pass, 1));
  const Ticket second = machine.submit(std::span(&pass, 1));
  std::string message;
  {
    const Failing failing("cuEventQuery", 719);
    message = message_of<DeviceError>([&] { machine.device->wait(ticket, kLong); });
  }
  check(contains(message, "a step on the GPU failed") && contains(message, "719") &&
            contains(message, "load them again"),
        "what failed, and what to do: " + message);
  check(contains(message_of<DeviceError>([&] { machine.device->wait(second, kLong); }), "719"),
        "what was behind it is not waited for");
  check(contains(message_of<DeviceError>([&] { machine.submit(std::span(&pass, 1)); }),
                 "an earlier command failed"),
        "nothing is submitted any more");
  Machine after;
  check(after.run(after.compile({{&kAppend, {}}})).finished,
        "a new device is none the worse for it");
}

void test_a_launch_that_fails() {
  Machine machine;
  const Program program = machine.compile({{&kAppend, {}}});
  const Failing failing("cuLaunchKernelEx", 701);
  const std::string message = message_of<DeviceError>([&] { machine.run(program); });
  check(contains(message, "the launch of append for command 0"), "by its name: " + message);
}

void test_profile() {
  Machine machine;
  const Program program = machine.compile({{&kNote, {}}, {&kNote, {}}});
  const Pass pass = Machine::pass_over(program);
  Replay replay;
  replay.passes = std::span(&pass, 1);
  const std::vector<CommandTime> times = machine.device->profile(replay);
  check(times.size() == 2 && times[1].label == "command 1" && times[0].seconds == 0.25e-3,
        "each command is timed");
}

// What a rank knows: which one it is, of how many, where its own numbers and all exchanges are. Word 0 of its output counts
// launches, the next are these facts.
void note_ranks(const Arguments& arguments, uint32_t) {
  auto* words = slot<uint32_t>(arguments, 1);
  const auto params = arguments.params.get<AllReduceParams>();
  ++words[0];
  words[1] = params.rank;
  words[2] = params.n_ranks;
  words[3] = *slot<uint32_t>(arguments, 0);
  for (uint32_t rank = 0; rank < params.n_ranks; ++rank) {
    auto* exchange = slot<uint32_t>(arguments, kExchangeSlot + rank);
    exchange[params.rank] = 100 + params.rank;  // which the other ranks see
  }
  const auto* own = slot<uint32_t>(arguments, kExchangeSlot + params.rank);
  for (uint32_t rank = 0; rank < params.n_ranks; ++rank) words[4 + rank] = own[rank];
}

struct Group {
  explicit Group(uint32_t n_gpus)
      : device(create_device(n_gpus)),
        rows(device, 32 * sizeof(Row), "rows"),
        spans(device, 32 * sizeof(Span), "spans"),
        pages(device, 64, "pages"),
        sequences(device, sizeof(SequenceRecord), "sequences"),
        statuses(device, 32 * sizeof(Status), "statuses"),
        out(device, 64, "out"),
        own(device, {.name = "own",
                     .format = Format::f32,
                     .rows = 1,
                     .k = 4,
                     .parts = {{{.bytes = std::as_bytes(std::span(kOwn))}}},
                     .split = Split::columns}) {
    device->set_limits({.max_rows = 32, .max_updates = 4, .max_update_bytes = 64, .max_passes = 3});
    Command command;
    command.operation = Operation::all_reduce;
    command.params.set(AllReduceParams{2, 0, n_gpus, 0});
    KernelRequest request;
    request.operation = command.operation;
    request.params = command.params;
    command.pipeline = device->find_kernel(request);
    command.operands[0] = own.get().planes[0];
    command.operands[1] = out.binding();
    command.operands[kExchangeSlot] = device->exchange();
    DispatchTable table;
    table.commands = {command};
    table.labels = {"sum"};
    table.waits_for = {-1};
    program = device->compile(
        std::move(table), {rows.get(), spans.get(), pages.get(), sequences.get(), statuses.get()});
  }
  ~Group() { device->release_program(program); }

  static std::shared_ptr<Device> create_device(uint32_t n_gpus) {
    std::vector<std::shared_ptr<Device>> ranks;
    for (uint32_t gpu = 0; gpu < n_gpus; ++gpu) ranks.push_back(create_cuda_device({.gpu = gpu}));
    return std::make_shared<DeviceGroup>(std::move(ranks));
  }
  Ticket submit(uint32_t steps = 1, uint32_t n_rows = 1, uint32_t n_head_rows = 0) {
    const Pass pass{program, 0, n_rows, 0, n_head_rows, 0, 0};
    Replay replay;
    replay.steps = steps;
    replay.passes = {&pass, 1};
    return device->submit(replay);
  }

  static constexpr std::array<uint32_t, 4> kOwn{11, 12, 21, 22};
  std::shared_ptr<Device> device;
  OwnedBuffer rows, spans, pages, sequences, statuses, out;
  OwnedWeight own;
  Program program;
};

// Steps that are no graph: more launches than the driver takes of a GPU that waits for the other one.
void test_large_steps_of_groups() {
  for (const auto& [n_rows, n_head_rows] : {std::pair{32u, 0u}, {1u, 17u}}) {
    Group group(2);
    const uint64_t launches = stub().counts().launches;
    Ticket ticket = 0;
    uint32_t n_blocked = 0;
    {
      std::jthread submits;
      const ClosedGate gate;
      submits = std::jthread([&] { ticket = group.submit(1'500, n_rows, n_head_rows); });
      for (int i = 0; i < 10'000 && n_blocked < 2; ++i) {
        std::this_thread::sleep_for(milliseconds(1));
        n_blocked = stub().counts().blocked;
      }
    }
    check(n_blocked == 2, "both GPUs have as many launches as the driver takes");
    check(group.device->wait(ticket, kLong).finished, "and get the others");
    check(stub().counts().launches == launches + 3'000, "each step is one on every GPU");
  }
  {
    Group group(2);
    const Pass pass{group.program, 0, 33, 0, 0, 0, 0};
    Replay replay;
    replay.passes = {&pass, 1};
    check(!message_of<ArgumentError>([&] { group.device->submit(replay); }).empty(),
          "more rows than there is memory for");
    check(group.device->wait(group.submit(1, 32), kLong).finished, "no rank has it: all go on");
  }
  Group group(2);
  const Failing failing("cuLaunchKernelEx", 701, 1);
  const std::string message = message_of<DeviceError>([&] { group.submit(1, 32); });
  check(contains(message, " of 2 (counted from 0") && contains(message, "701"), message);
  check(
      contains(message_of<DeviceError>([&] { group.submit(1, 32); }), "an earlier command failed"),
      "one rank has the step, and waits for the other");
}

void test_several_gpus() {
  stub().set_gpus(2);
  const uint64_t before = stub().counts().allocated, peers = stub().counts().peers;
  {
    Group group(2);
    check(stub().counts().peers == peers + 2, "each reaches the memory of the other");
    check(group.device->chip().name == "2 x Stub GPU" && group.device->n_ranks() == 2,
          "what the group is");
    const uint64_t launches = stub().counts().launches;
    check(group.device->wait(group.submit(3), kLong).finished, "both have finished");
    check(stub().counts().launches == launches + 6, "each step is one on every GPU");
    std::array<uint32_t, 16> words{};
    group.device->read(group.out.binding(), std::as_writable_bytes(std::span(words)));
    // The stand-in runs the first GPU's steps before the second's.
    check(words[0] == 3 && words[1] == 0 && words[2] == 2 && words[3] == 11 && words[4] == 100,
          "the first rank has its share, and knows who it is");
    std::array<uint32_t, 2> seen{};
    group.device->read(group.device->exchange(), std::as_writable_bytes(std::span(seen)));
    check(seen[0] == 100 && seen[1] == 101, "the second rank wrote into the first one's exchange");
    const Group again(2);  // peers are told once
    check(stub().counts().peers == peers + 2, "access is given once");
  }
  check(stub().counts().allocated == before, "everything is given back");

  {
    Group group(2);
    Ticket ticket = 0;
    {
      const ClosedGate gate;
      ticket = group.submit();
      check(!group.device->wait(ticket, milliseconds(1)).finished, "a time-out");
    }
    std::string message;
    {
      const Failing failing("cuEventQuery", 719, 1);  // of the second one, behind the first
      message = message_of<DeviceError>([&] { group.device->wait(ticket, kLong); });
    }
    check(contains(message, "GPU 1 of 2") && contains(message, "719"), "which GPU: " + message);
    check(contains(message_of<DeviceError>([&] { group.submit(); }), "an earlier command failed"),
          "without it nothing is computed");
  }
  {
    Group group(2);
    const Failing failing("cuLaunchKernelEx", 701, 1);  // the first GPU has its step
    const std::string message = message_of<DeviceError>([&] { group.submit(); });
    check(contains(message, "GPU 1 of 2") && contains(message, "the launch of all_reduce for sum"),
          message);
    check(contains(message_of<DeviceError>([&] { group.submit(); }), "an earlier command failed"),
          "the first would wait for the second");
  }

  test_large_steps_of_groups();

  stub().link_gpus(false);
  const std::string message = message_of<DeviceError>([] { Group::create_device(2); });
  check(contains(message, "GPU 0 cannot read the memory of GPU 1") && contains(message, "gpus=1"),
        message);
  stub().link_gpus(true);
  const std::string few = message_of<DeviceError>([] { Group::create_device(3); });
  check(contains(few, "this process has 2 GPUs, and 3 are asked for"), few);
  stub().set_gpus(1);
}

void test_fork() {
  Machine machine;
  const Program program = machine.compile({{&kAppend, {}}});
  const pid_t child = fork();
  if (child == 0) {
    const bool is_refused =
        contains(message_of<DeviceError>([&] { machine.run(program); }), "forked");
    std::_Exit(is_refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child is told to load again");
  machine.run(program);
}

}  // namespace
}  // namespace akunu::test

namespace akunu::cuda {

std::span<const KernelImage> kernel_images() {
  static const KernelImage images[] = {{"first", test::kFirst}, {"second", test::kSecond}};
  return images;
}
std::string_view kernel_architectures() { return "sm_90a"; }

}  // namespace akunu::cuda

int main() {
  using namespace akunu::test;
  test_no_driver();
  test_what_gpus_are_taken();
  test_memory();
  test_a_weight_in_the_hosts_memory();
  test_submissions_in_order();
  test_copies();
  test_graphs();
  test_statuses();
  test_a_lost_gpu();
  test_a_launch_that_fails();
  test_profile();
  test_several_gpus();
  test_fork();
  return summary();
}
