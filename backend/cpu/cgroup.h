// What the container that this process runs in allows (Linux control groups, version 1 and 2).
// `root` is put before every path; tests pass a tree of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace akunu::cpu {

// Processors that the group may use in the long run, e.g. 1.5; none: no quota.
std::optional<double> processor_quota(const std::string& root = "");

// Bytes of the group's memory limit, the lowest on the way up.
std::optional<uint64_t> group_memory_limit(const std::string& root = "");

// Bytes that the group may still take: limit less use; page cache that the kernel would drop does
// not count as use.
std::optional<uint64_t> group_memory_left(const std::string& root = "");

}  // namespace akunu::cpu
