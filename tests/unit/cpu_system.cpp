// What the CPU device learns from the system: container limits, memory, instruction set levels; and
// the memory it gives out.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/system_file.h"
#include "cpu/cgroup.h"
#include "cpu/cpu_device.h"
#include "cpu/isa_level.h"
#include "cpu/memory.h"
#include "cpu/numa.h"
#include "cpu/processors.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

// A tree of files below a folder of its own.
class FakeSystem {
 public:
  FakeSystem()
      : root_(std::filesystem::temp_directory_path() / ("akunu-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(root_);
  }
  ~FakeSystem() { std::filesystem::remove_all(root_); }
  void add(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

constexpr const char* kMeminfo =
    "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\nHugePages_Total:   "
    "    0\n";

void test_nodes_have_the_processors_that_may_be_used() {
  FakeSystem system;
  check(cpu::memory_nodes({0, 1}, system.root()).empty(), "no folder, no nodes");
  system.add("sys/devices/system/node/online", "0-2,10\n");
  system.add("sys/devices/system/node/node10/cpulist", "4-5\n");
  system.add("sys/devices/system/node/node0/cpulist", "0-3,8\n");
  system.add("sys/devices/system/node/node1/cpulist", "\n");  // memory without processors
  system.add("sys/devices/system/node/node2/cpulist", "6-7\n");
  const std::vector<cpu::MemoryNode> nodes = cpu::memory_nodes({1, 2, 4, 5, 8}, system.root());
  check(nodes.size() == 2, "nodes without processors of ours are left out");
  check(nodes[0].number == 0 && nodes[0].processors == std::vector<uint32_t>({1, 2, 8}),
        "a list of ranges and single ones");
  check(nodes[1].number == 10 && nodes[1].processors == std::vector<uint32_t>({4, 5}),
        "in the order of their numbers");
  check(cpu::memory_nodes({6}, system.root()).size() == 1, "a mask inside one node");
}

void test_workers_are_dealt_to_nodes_in_proportion() {
  const std::vector<cpu::MemoryNode> nodes{{0, {0, 1, 2, 3, 4, 5}}, {1, {6, 7}}};
  std::vector<size_t> places;
  for (uint32_t worker = 0; worker < 4; ++worker)
    places.push_back(cpu::node_of_worker(nodes, worker, 4));
  check(places == std::vector<size_t>({0, 0, 0, 1}), "three quarters and a quarter");
  for (uint32_t worker = 0; worker < 8; ++worker)
    check(cpu::node_of_worker(nodes, worker, 8) == (worker < 6 ? 0u : 1u), "one per processor");
}

void test_memory_that_is_placed_is_memory() {
  // Every Linux machine with NUMA has node 0; elsewhere, or where it is not allowed, this says no.
  const cpu::MemoryBlock block(1024 * 1024);
  cpu::interleave(block.data(), block.size(), {{0, {0}}});
  std::memset(block.data(), 1, block.size());
  check(block.data()[block.size() - 1] == std::byte{1}, "it can be written");
  check(!cpu::interleave(block.data(), block.size(), {{1000, {0}}}), "there is no node 1000");
}

void test_without_groups() {
  FakeSystem system;
  system.add("proc/meminfo", kMeminfo);
  check(!cpu::processor_quota(system.root()) && !cpu::group_memory_left(system.root()),
        "no group, no limit");
  check(cpu::available_memory(system.root()) == 600 * 1024, "MemAvailable is what is available");
  check(cpu::total_memory(system.root()) == 1000 * 1024, "MemTotal is what there is");
}

void test_nothing_is_known_where_the_system_says_nonsense() {
  FakeSystem system;
  const std::optional<uint64_t> physical = cpu::total_memory(system.root());
  check(physical.value_or(0) > 0, "without /proc/meminfo, the machine's memory");
  system.add("proc/meminfo", "MemTotal: 0 kB\nMemAvailable: 0 kB\n");
  check(cpu::total_memory(system.root()) == physical, "no machine has 0 bytes");
  check(cpu::available_memory(system.root()) == physical, "and 0 are not available either");
  system.add("proc/meminfo",
             "MemTotal: 99999999999999999999 kB\nMemAvailable: 18446744073709551615 kB\n");
  check(cpu::total_memory(system.root()) == physical &&
            cpu::available_memory(system.root()) == physical,
        "numbers that 64 bits cannot hold are no numbers");
}

void test_files_of_the_system_are_text() {
  FakeSystem system;
  system.add("file", std::string(10'000, 'a') + "\n");
  const std::optional<std::string> text = read_system_file(system.root() + "/file");
  check(text && text->size() == 10'001 && text->back() == '\n', "all of a file");
  check(!read_system_file(system.root() + "/none") && !read_system_file(system.root()),
        "nothing of what is not there, and of a folder");
  check(read_system_file("/dev/null") == "", "no bytes are no error");
  check(split("a,b,", ',') == std::vector<std::string_view>({"a", "b", ""}), "three parts");
  check(split("", ',') == std::vector<std::string_view>({""}), "one, of nothing");
  check(leading_number("  1000 kB") == 1000u && leading_number("7") == 7u, "the number in front");
  check(!leading_number("max") && !leading_number("-1") && !leading_number("") &&
            !leading_number("18446744073709551616"),
        "other words are no number");
}

void test_a_group_beside_the_mount_is_not_below_it() {
  FakeSystem system;
  system.add("proc/self/cgroup", "0::/docker/12\n");
  system.add("proc/self/mountinfo",
             "29 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  system.add("sys/fs/cgroup/memory.max", "400000\n");
  check(cpu::group_memory_limit(system.root()) == 400'000, "the mount's own limit is found");
}

void test_version_2() {
  FakeSystem system;
  system.add("proc/meminfo", kMeminfo);
  system.add("proc/self/cgroup", "0::/a/b\n");
  system.add("proc/self/mountinfo",
             "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  system.add("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  system.add("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  system.add("sys/fs/cgroup/a/b/memory.max", "max\n");
  system.add("sys/fs/cgroup/a/b/memory.current", "5\n");
  system.add("sys/fs/cgroup/a/memory.max", "400000\n");
  system.add("sys/fs/cgroup/a/memory.current", "300000\n");
  system.add("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 50000\nactive_file 7\n");
  check(cpu::processor_quota(system.root()) == 1.5, "a parent's quota holds");
  check(cpu::group_memory_limit(system.root()) == 400'000, "a parent's memory limit holds");
  check(cpu::available_memory(system.root()) == 150'000, "cache that can be dropped is not use");
  check(cpu::total_memory(system.root()) == 400'000, "there is no more memory than the limit");
}

void test_version_1() {
  FakeSystem system;
  system.add("proc/meminfo", kMeminfo);
  system.add("proc/self/cgroup", "4:memory:/docker/1\n2:cpu,cpuacct:/docker/1\n1:name=systemd:/\n");
  // A container sees its own group as the root of the mount.
  system.add("proc/self/mountinfo",
             "33 31 0:30 /docker/1 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
             "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  system.add("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  system.add("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  system.add("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  system.add("sys/fs/cgroup/memory/memory.usage_in_bytes", "600000\n");
  check(cpu::processor_quota(system.root()) == 0.5, "half a processor");
  check(cpu::group_memory_left(system.root()) == 0, "more use than limit leaves nothing");
  system.add("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  system.add("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  check(!cpu::processor_quota(system.root()) && !cpu::group_memory_limit(system.root()),
        "-1 and 2^63 are no limit");
}

void test_damaged_system_files() {
  for (const char* text :
       {"", "\n", "0", "::::", "29 23 - - -", "0::", "29 23 0:26 / /x rw - cgroup2"}) {
    FakeSystem system;
    for (const char* file : {"proc/meminfo", "proc/self/cgroup", "proc/self/mountinfo"})
      system.add(file, text);
    check(!cpu::processor_quota(system.root()) && cpu::available_memory(system.root()) > 0,
          "nonsense is read as nothing known");
  }
}

void test_workers_keep_to_the_quota() {
  const uint32_t without = cpu::usable_processors("/nowhere");
  for (const auto& [quota, processors] : {std::pair{"1000", 1u},
                                          {"100000", 1u},
                                          {"100001", 2u},
                                          {"150000", 2u},
                                          {"99900000", 999u}}) {
    FakeSystem system;
    system.add("proc/self/cgroup", "0::/\n");
    system.add("proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    system.add("sys/fs/cgroup/cpu.max", std::string(quota) + " 100000\n");
    check(cpu::usable_processors(system.root()) == std::min(without, processors),
          std::string("a quota of ") + quota + " in 100000 is rounded up");
    check(cpu::usable_cores(system.root()) == std::min(without, processors),
          "and holds for cores as for processors");
  }
}

void test_processors_of_one_core_are_one_core() {
  FakeSystem system;
  check(cpu::count_cores({0, 1, 2, 3}, system.root()) == 4,
        "where nothing is said, each is a core");
  const auto topology = [&](int processor, const char* file, const char* text) {
    system.add("sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/" + file,
               text);
  };
  // Two performance cores of two processors each, numbered as Intel does, and two efficiency cores.
  topology(0, "core_cpus_list", "0-1\n");
  topology(1, "core_cpus_list", "0-1\n");
  topology(2, "core_cpus_list", "2-3\n");
  topology(3, "core_cpus_list", "2-3\n");
  topology(4, "core_cpus_list", "4\n");
  topology(5, "core_cpus_list", "5\n");
  check(cpu::count_cores({0, 1, 2, 3, 4, 5}, system.root()) == 4, "six processors, four cores");
  check(cpu::count_cores({1, 3, 5}, system.root()) == 3, "a mask with one processor of each core");
  check(cpu::count_cores({0, 1}, system.root()) == 1, "a mask inside one core");
  // As AMD numbers them, and with the older name.
  topology(8, "thread_siblings_list", "8,24\n");
  topology(24, "thread_siblings_list", "8,24\n");
  topology(9, "thread_siblings_list", "9,25\n");
  check(cpu::count_cores({8, 9, 24}, system.root()) == 2, "siblings far from each other");
  topology(9, "core_cpus_list", "\n");
  check(cpu::count_cores({8, 9, 24}, system.root()) == 2, "an empty file says nothing");
}

void test_this_machine() {
  check(cpu::usable_processors() >= 1, "there is a processor");
  check(cpu::usable_cores() >= 1 && cpu::usable_cores() <= cpu::usable_processors(),
        "and a core, which has one at least");
  check(create_cpu_device({})->chip().workers == std::min(256u, cpu::usable_cores()),
        "a device has a thread for each core");
  check(cpu::available_memory().value_or(0) > 0 && cpu::available_memory() <= cpu::total_memory(),
        "there is memory");
  check(!cpu::cpu_name().empty(), "the CPU has a name");
}

void test_levels() {
  unsetenv("AKUNU_CPU_ISA");
  const cpu::IsaChoice best = cpu::choose_isa_level("");
  check(contains(best.reason, "best"), "without a wish it is the best");
  for (const cpu::IsaLevel& info : cpu::isa_levels()) {
    if (!info.can_run()) {
      check(contains(message_of<ArgumentError>([&] { cpu::choose_isa_level(info.name); }),
                     info.is_built() ? "does not offer" : "is not in this build"),
            "a level that is missing is refused");
      continue;
    }
    check(cpu::choose_isa_level(info.name).level == &info, "an available level can be asked for");
    setenv("AKUNU_CPU_ISA", std::string(info.name).c_str(), 1);
    const std::shared_ptr<Device> device = create_cpu_device({});
    check(device->chip().level == info.name && contains(device->chip().reason, "AKUNU_CPU_ISA"),
          "the environment forces a level, and the chip says so");
    unsetenv("AKUNU_CPU_ISA");
  }
  setenv("AKUNU_CPU_ISA", "avx9", 1);
  const std::string message = message_of<ArgumentError>([] { create_cpu_device({}); });
  check(contains(message, "\"avx9\" (from AKUNU_CPU_ISA)") &&
            contains(message, "available here: generic"),
        message);
  check(create_cpu_device({.threads = 0, .isa = "generic"})->chip().level == "generic",
        "the caller's wish goes first");
  unsetenv("AKUNU_CPU_ISA");
}

// What the CPU runs as a sequence: its launches cost next to nothing.
bool is_left_to_others(Operation operation) {
  return operation == Operation::norm_matmul_group || operation == Operation::norm_gated_matmul ||
         operation == Operation::rope_attention;
}

bool uses_tiles(Operation operation) {
  return operation == Operation::matmul || operation == Operation::matmul_add ||
         operation == Operation::matmul_group || operation == Operation::gated_matmul ||
         operation == Operation::matmul_rope_kv_write || operation == Operation::attention;
}

// The forced level's kernels are the ones that run: no two levels share one, but for the one with a matrix
// unit, which has the vector kernels of the level below it.
void test_every_level_has_kernels_of_its_own() {
  std::set<const void*> kernels;
  size_t n = 0;
  for (const cpu::IsaLevel& info : cpu::isa_levels()) {
    if (!info.can_run()) continue;
    const std::shared_ptr<Device> device =
        create_cpu_device({.threads = 1, .isa = std::string(info.name)});
    for (uint32_t i = 0; i < kOperationCount; ++i) {
      KernelRequest request;
      request.row_class = RowClass::many;  // which has all of them
      const bool has_tiles = info.prompts_with_blocks == ActivationKind::bf16;
      if (has_tiles) {
        if (!uses_tiles(static_cast<Operation>(i))) continue;
        request.activation = ActivationKind::bf16;
      }
      request.operation = static_cast<Operation>(i);
      if (request.operation == Operation::short_convolution ||
          request.operation == Operation::causal_convolution ||
          request.operation == Operation::selective_scan ||
          request.operation == Operation::gated_delta_rule)
        request.cache = Format::f32;
      const OperationInfo& operation = operation_info(request.operation);
      size_t n_weights = 0;
      for (const OperandInfo& operand : operation.operands)
        if (operand.kind == OperandKind::weight && !operand.optional)
          request.weights[n_weights++] = has_tiles ? Format::q4_0 : Format::f32;
      const Pipeline pipeline = device->find_kernel(request);
      check(static_cast<bool>(pipeline) != is_left_to_others(request.operation),
            std::string(info.name) + " has " + std::string(operation.name));
      if (!pipeline) continue;
      const auto& kernel = *static_cast<const cpu::Kernel*>(pipeline.handle);
      check(kernel == cpu::find_kernel(info, request), "the device has the kernels of its level");
      // The kernel of attention itself, which looks whether sinks are bound.
      if (request.operation == Operation::sink_attention) continue;
      kernels.insert(reinterpret_cast<const void*>(kernel.run));
      ++n;
    }
  }
  check(kernels.size() == n, "no kernel serves two operations or two levels");
}

void test_memory() {
  const std::shared_ptr<Device> device = create_cpu_device({.threads = 1, .isa = {}});
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{100'000}, uint64_t{3'000'000}}) {
    const Buffer buffer = device->allocate(bytes, "blocks");
    bool zero = true;
    for (uint64_t i = 0; i < bytes; ++i) zero &= buffer.contents[i] == std::byte{0};
    check(
        zero && buffer.handle != nullptr && reinterpret_cast<uintptr_t>(buffer.contents) % 64 == 0,
        "memory is zeroed and aligned");
    const std::vector<MemoryUse> uses = device->memory_use();
    check(bytes == 0 ? uses.empty()
                     : uses.size() == 1 && uses[0].label == "blocks" && uses[0].bytes == bytes,
          "and counted by its label");
    device->release(buffer);
    check(device->memory_use().empty(), "until it is released");
  }
  const std::string message =
      message_of<OutOfMemoryError>([&] { device->allocate(uint64_t{1} << 50, "the cache"); });
  check(contains(message, "the cache needs 1073741824.0 MiB; ") &&
            contains(message, "MiB are available"),
        message);
  const MemoryLeft left = device->memory_left();
  check(left.memory && !left.address_space, "without a limit of the process");
  rlimit before{};
  const std::string size = read_system_file("/proc/self/statm").value_or("");
  if (getrlimit(RLIMIT_AS, &before) == 0 && leading_number(size)) {
    const rlimit tight{
        *leading_number(size) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + 4 * 1024 * 1024,
        before.rlim_max};
    setrlimit(RLIMIT_AS, &tight);
    const std::string refused =
        message_of<OutOfMemoryError>([&] { device->allocate(9437184, "scratch"); });
    setrlimit(RLIMIT_AS, &before);
    check(contains(refused, "scratch needs 9.0 MiB; the process may take ") &&
              contains(refused, " MiB more (ulimit -v or -d)"),
          refused);
  }
  check(!message_of<OutOfMemoryError>([&] { device->allocate(UINT64_MAX, "all"); }).empty(),
        "2^64 - 1 bytes are too many");
  check(device->memory_use().empty(), "what was refused is not counted");
}

void test_weights() {
  const std::shared_ptr<Device> device = create_cpu_device({.threads = 1, .isa = {}});
  const auto file = std::make_shared<std::vector<std::byte>>(4096, std::byte{42});
  const auto source = [&](uint64_t offset, uint64_t bytes, Format format, uint64_t rows,
                          uint64_t k) {
    return WeightSource{"blk.0",
                        format,
                        rows,
                        k,
                        {WeightPart{std::span(*file).subspan(offset, bytes), file, *file}}};
  };
  const Weight mapped = device->import_weight(source(2, 3 * 18, Format::q4_0, 3, 32));
  check(mapped.planes[0].buffer.contents == file->data() + 2,
        "two bytes of alignment do for half scales: no copy");
  check(file.use_count() == 2, "the file stays open");
  const Weight copied = device->import_weight(source(2, 4 * 2 * 8, Format::f32, 2, 8));
  check(copied.planes[0].buffer.contents != file->data() + 2 &&
            copied.planes[0].buffer.contents[63] == std::byte{42},
        "floats at an odd place are copied");
  uint64_t n_mapped = 0, n_copied = 0;
  for (const MemoryUse& use : device->memory_use()) (use.mapped ? n_mapped : n_copied) += use.bytes;
  check(n_mapped == 54 && n_copied == 64, "mapped and copied bytes are counted apart");
  const std::array<std::byte, 1> byte{};
  check(!message_of<ArgumentError>([&] { device->write(mapped.planes[0], byte); }).empty(),
        "mapped files are not written");
  device->release_weight(mapped);
  device->release_weight(copied);
  check(file.use_count() == 1 && device->memory_use().empty(), "releasing lets go of the file");

  const auto refused = [&](const WeightSource& wrong, std::string_view part) {
    const std::string message = message_of<ArgumentError>([&] { device->import_weight(wrong); });
    check(contains(message, "blk.0") && contains(message, part), message);
  };
  refused(source(0, 18, Format::q4_0, 1, 31), "multiple of 32");
  refused(source(0, 100, Format::f32, 5, 6), "has 100 bytes");
  refused(source(0, 0, Format::f32, uint64_t{1} << 62, 4), "has 0 bytes");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_nodes_have_the_processors_that_may_be_used();
  test_workers_are_dealt_to_nodes_in_proportion();
  test_memory_that_is_placed_is_memory();
  test_without_groups();
  test_nothing_is_known_where_the_system_says_nonsense();
  test_files_of_the_system_are_text();
  test_a_group_beside_the_mount_is_not_below_it();
  test_version_2();
  test_version_1();
  test_damaged_system_files();
  test_workers_keep_to_the_quota();
  test_processors_of_one_core_are_one_core();
  test_this_machine();
  test_levels();
  test_every_level_has_kernels_of_its_own();
  test_memory();
  test_weights();
  return summary();
}
