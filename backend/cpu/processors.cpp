#include "cpu/processors.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <thread>

#include "core/system_file.h"
#include "cpu/cgroup.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace akunu::cpu {
namespace {

uint32_t within_quota(uint32_t count, const std::string& root) {
  if (const std::optional<double> quota = processor_quota(root))
    count = std::min(count, std::max(1u, static_cast<uint32_t>(std::ceil(*quota))));
  return count;
}

// The lowest processor of a core stands for it: "3,19" or "6-7" for both of its processors.
uint64_t core_of(uint32_t processor, const std::string& root) {
  const std::string folder =
      root + "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
  // The second is the first one's name before Linux 5.3.
  for (const char* file : {"core_cpus_list", "thread_siblings_list"})
    if (const std::optional<std::string> text = read_system_file(folder + file))
      if (const std::optional<uint64_t> lowest = leading_number(*text)) return *lowest;
  return processor;
}

}  // namespace

std::vector<uint32_t> allowed_processors() {
  std::vector<uint32_t> processors;
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (uint32_t processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
#endif
  if (processors.empty())
    for (uint32_t i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      processors.push_back(i);
  return processors;
}

uint32_t count_cores(const std::vector<uint32_t>& processors, const std::string& root) {
  std::set<uint64_t> cores;
  for (const uint32_t processor : processors) cores.insert(core_of(processor, root));
  return static_cast<uint32_t>(cores.size());
}

uint32_t usable_processors(const std::string& root) {
  return within_quota(static_cast<uint32_t>(allowed_processors().size()), root);
}

uint32_t usable_cores(const std::string& root) {
  return within_quota(count_cores(allowed_processors(), root), root);
}

}  // namespace akunu::cpu
