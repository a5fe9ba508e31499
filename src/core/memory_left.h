// How much memory may still be taken, and the words for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace akunu {

// Bytes; nothing where the system does not tell, or where there is no limit.
struct MemoryLeft {
  // Of the machine, its container or the GPU.
  std::optional<uint64_t> memory;
  // Of a process with a limit of its own. Files that are mapped have taken theirs already.
  std::optional<uint64_t> address_space;

  bool fits(uint64_t bytes) const {
    return !(memory && bytes > *memory) && !(address_space && bytes > *address_space);
  }
};

// Less is not worth asking the system how much there is.
constexpr uint64_t kAskSystemFrom = 1024 * 1024;

// "24.0 MiB"
std::string mebibytes(uint64_t bytes);

// "the process may take 24.0 MiB more (ulimit -v or -d)"
std::string describe_address_space(uint64_t bytes_left);

// Why the system may have refused `bytes`, to be said behind how many they are: "24.0 MiB are available", what the
// process may take, or that there should have been enough.
std::string describe_refusal(uint64_t bytes, const MemoryLeft& left);

}  // namespace akunu
