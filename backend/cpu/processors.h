// Which processors this process may use. `root` is put before every path; tests pass a tree of their
// own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace akunu::cpu {

// Those in this thread's affinity mask, in order; all of them where the system has no masks.
std::vector<uint32_t> allowed_processors();

// How many cores they belong to. Two processors of one core (SMT, hyper-threads) share its arithmetic
// units; where the system does not say which do, each is a core.
uint32_t count_cores(const std::vector<uint32_t>& processors, const std::string& root = "");

// Processors of the affinity mask, or of the container's quota, rounded up, where that is less.
uint32_t usable_processors(const std::string& root = "");

// Likewise, cores: what a device has threads for unless it is told otherwise.
uint32_t usable_cores(const std::string& root = "");

}  // namespace akunu::cpu
