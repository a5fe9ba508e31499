#include "cpu/numa.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/system_file.h"
#include "cpu/memory.h"
#include "cpu/processors.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace akunu::cpu {
namespace {

// "0-3,8": what of it is in `allowed`. A text that is something else is taken as far as it goes.
std::vector<uint32_t> listed(std::string_view text, const std::vector<uint32_t>& allowed) {
  std::vector<uint32_t> found;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    uint32_t first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) break;
    uint32_t last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc()) break;
    }
    for (const uint32_t processor : allowed)
      if (first <= processor && processor <= last) found.push_back(processor);
    at = parsed.ptr < end && *parsed.ptr == ',' ? parsed.ptr + 1 : end;
  }
  return found;
}

}  // namespace

std::vector<MemoryNode> memory_nodes(const std::vector<uint32_t>& allowed,
                                     const std::string& root) {
  constexpr std::string_view kPrefix = "node";
  std::vector<MemoryNode> nodes;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(root + "/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    MemoryNode node;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, node.number);
    if (parsed.ec != std::errc() || parsed.ptr != end) continue;
    const std::optional<std::string> text = read_system_file(entry.path() / "cpulist");
    if (text) node.processors = listed(*text, allowed);
    if (!node.processors.empty()) nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const MemoryNode& a, const MemoryNode& b) { return a.number < b.number; });
  return nodes;
}

size_t node_of_worker(const std::vector<MemoryNode>& nodes, uint32_t worker, uint32_t n_workers) {
  size_t total = 0;
  for (const MemoryNode& node : nodes) total += node.processors.size();
  size_t place = total * worker / n_workers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (place < nodes[i].processors.size()) return i;
    place -= nodes[i].processors.size();
  }
  return nodes.size() - 1;
}

#if defined(__linux__)

std::vector<MemoryNode> nodes_to_spread_over(uint32_t n_workers) {
  const std::vector<uint32_t> allowed = allowed_processors();
  if (n_workers > allowed.size()) return {};
  const std::vector<MemoryNode> nodes = memory_nodes(allowed);
  std::vector<MemoryNode> used;
  for (uint32_t worker = 0; worker < n_workers && !nodes.empty(); ++worker) {
    const MemoryNode& node = nodes[node_of_worker(nodes, worker, n_workers)];
    if (used.empty() || used.back().number != node.number) used.push_back(node);
  }
  return used.size() > 1 ? used : std::vector<MemoryNode>();
}

void stay_on(const MemoryNode& node) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const uint32_t processor : node.processors) CPU_SET(processor, &mask);
  sched_setaffinity(0, sizeof mask, &mask);
}

bool interleave(std::byte* memory, uint64_t bytes, const std::vector<MemoryNode>& nodes) {
#if defined(SYS_mbind)
  // As in the kernel's headers, which need not be there.
  constexpr unsigned long kInterleave = 3;  // MPOL_INTERLEAVE
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const MemoryNode& node : nodes) {
    mask.resize(std::max<size_t>(mask.size(), node.number / kBits + 1));
    mask[node.number / kBits] |= 1ul << node.number % kBits;
  }
  // The kernel takes one bit less than it is told.
  return syscall(SYS_mbind, memory, bytes, kInterleave, mask.data(), mask.size() * kBits + 1,
                 0ul) == 0;
#else
  static_cast<void>(memory), static_cast<void>(bytes), static_cast<void>(nodes);
  return false;
#endif
}

#else

std::vector<MemoryNode> nodes_to_spread_over(uint32_t) { return {}; }
void stay_on(const MemoryNode&) {}
bool interleave(std::byte*, uint64_t, const std::vector<MemoryNode>&) { return false; }

#endif

std::string describe_placement(const std::vector<MemoryNode>& nodes) {
  std::string text = std::to_string(nodes.size()) + " memory nodes (";
  for (const MemoryNode& node : nodes)
    text += (&node == nodes.data() ? "" : " + ") + std::to_string(node.processors.size());
  text += " processors): helpers stay on their node, ";
  constexpr uint64_t kTrial = 1024 * 1024;  // mapped, and never touched
  const MemoryBlock trial(kTrial);
  return text + (trial.data() != nullptr && interleave(trial.data(), kTrial, nodes)
                     ? "cache and scratch come from all in turn"
                     : "placing memory is not allowed here");
}

}  // namespace akunu::cpu
