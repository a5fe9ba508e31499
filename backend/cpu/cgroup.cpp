#include "cpu/cgroup.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/system_file.h"

namespace akunu::cpu {
namespace {

std::optional<uint64_t> read_number(const std::string& path) {
  const std::optional<std::string> text = read_system_file(path);
  return text ? leading_number(*text) : std::nullopt;
}

bool contains(const std::vector<std::string_view>& parts, std::string_view wanted) {
  return std::find(parts.begin(), parts.end(), wanted) != parts.end();
}

struct Group {
  int version = 2;
  std::vector<std::string> folders;  // the process's own group first, then its parents
};

// /proc/self/cgroup: "4:memory:/docker/1" per version 1 controller, "0::/a/b" for version 2.
std::optional<std::string> path_of(const std::string& root, int version,
                                   std::string_view controller) {
  const std::optional<std::string> groups = read_system_file(root + "/proc/self/cgroup");
  if (!groups) return std::nullopt;
  for (const std::string_view line : split(*groups, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (version == 2 ? controllers.empty() : contains(split(controllers, ','), controller))
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// /proc/self/mountinfo: "33 31 0:30 ROOT MOUNT_POINT options [tags] - TYPE source SUPER_OPTIONS".
// In a container ROOT is often the group itself, which then is the top of what we can see.
std::optional<Group> find_group(const std::string& root, int version, std::string_view controller) {
  const std::optional<std::string> mounts = read_system_file(root + "/proc/self/mountinfo");
  const std::optional<std::string> path = path_of(root, version, controller);
  if (!mounts || !path) return std::nullopt;
  for (const std::string_view line : split(*mounts, '\n')) {
    const std::vector<std::string_view> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    if (dash[1] != (version == 2 ? "cgroup2" : "cgroup")) continue;
    if (version == 1 && !contains(split(dash[3], ','), controller)) continue;
    const std::string_view mount_root = fields[3] == "/" ? "" : fields[3];
    const std::string mount_point = root + std::string(fields[4]);
    std::string below = *path == "/" ? "" : *path;
    if (below == mount_root || below.starts_with(std::string(mount_root) + "/"))
      below = below.substr(mount_root.size());
    Group group{version, {}};
    while (below.starts_with('/')) {
      group.folders.push_back(mount_point + below);
      below = below.substr(0, below.rfind('/'));
    }
    group.folders.push_back(mount_point);
    return group;
  }
  return std::nullopt;
}

template <class Value>
void keep_smaller(std::optional<Value>& smallest, const std::optional<Value>& value) {
  if (value && (!smallest || *value < *smallest)) smallest = value;
}

std::optional<double> quota_of(const std::string& folder, int version) {
  if (version == 1) {
    const std::optional<uint64_t> quota = read_number(folder + "/cpu.cfs_quota_us");
    const std::optional<uint64_t> period = read_number(folder + "/cpu.cfs_period_us");
    if (!quota || !period || *period == 0) return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
  }
  const std::optional<std::string> text = read_system_file(folder + "/cpu.max");  // "150000 100000"
  if (!text) return std::nullopt;
  const std::vector<std::string_view> words = split(*text, ' ');
  if (words.size() != 2) return std::nullopt;
  const std::optional<uint64_t> quota = leading_number(words[0]), period = leading_number(words[1]);
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

uint64_t droppable_cache(const std::string& folder, int version) {
  const std::optional<std::string> statistics = read_system_file(folder + "/memory.stat");
  const std::string key = version == 2 ? "inactive_file " : "total_inactive_file ";
  if (!statistics) return 0;
  for (const std::string_view line : split(*statistics, '\n'))
    if (line.starts_with(key)) return leading_number(line.substr(key.size())).value_or(0);
  return 0;
}

std::optional<uint64_t> limit_of(const std::string& folder, int version) {
  const std::optional<uint64_t> limit =
      read_number(folder + (version == 2 ? "/memory.max" : "/memory.limit_in_bytes"));
  // Version 1 says "no limit" with the largest multiple of a page.
  return limit && *limit < uint64_t{1} << 62 ? limit : std::nullopt;
}

std::optional<uint64_t> left_of(const std::string& folder, int version) {
  const std::optional<uint64_t> limit = limit_of(folder, version);
  const std::optional<uint64_t> use =
      read_number(folder + (version == 2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !use) return std::nullopt;
  const uint64_t taken = *use - std::min(*use, droppable_cache(folder, version));
  return *limit - std::min(*limit, taken);
}

template <class Value>
std::optional<Value> smallest_of(const std::string& root, std::string_view controller,
                                 std::optional<Value> (*value_of)(const std::string&, int)) {
  std::optional<Value> smallest;
  for (int version : {2, 1})
    if (const std::optional<Group> group = find_group(root, version, controller))
      for (const std::string& folder : group->folders)
        keep_smaller(smallest, value_of(folder, version));
  return smallest;
}

}  // namespace

std::optional<double> processor_quota(const std::string& root) {
  return smallest_of(root, "cpu", quota_of);
}

std::optional<uint64_t> group_memory_limit(const std::string& root) {
  return smallest_of(root, "memory", limit_of);
}

std::optional<uint64_t> group_memory_left(const std::string& root) {
  return smallest_of(root, "memory", left_of);
}

}  // namespace akunu::cpu
