// How much memory may still be taken, and the words for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace akunu {

// Bytes; nothing where the system does not tell, or where there is no limit.
struct MemoryLeft {
  std::optional<uint64_t> memory;  // of the machine, its container or the GPU
  std::optional<uint64_t>
      address_space;  // of a process with a limit (ulimit -v); files that are mapped have theirs

  bool fits(uint64_t bytes) const {
    return !(memory && bytes > *memory) && !(address_space && bytes > *address_space);
  }
};

// Less is not worth asking the system how much there is.
constexpr uint64_t kAskSystemFrom = 1024 * 1024;

// "24.0 MiB"
std::string mebibytes(uint64_t bytes);

// Why the system may have refused `bytes`, to be said after that: "24.0 MiB are available", "the process may take 24.0
// MiB more (ulimit -v)", or that there should have been enough.
std::string describe_refusal(uint64_t bytes, const MemoryLeft& left);

}  // namespace akunu
