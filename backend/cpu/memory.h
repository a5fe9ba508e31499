// How much memory the machine and the container have, and blocks of it.
// `root` is put before every path; tests pass a tree of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace akunu::cpu {

// Bytes that may still be taken: what the kernel could give without swapping, or less where the
// container allows less. Nothing where the system does not tell.
std::optional<uint64_t> available_memory(const std::string& root = "");

// Bytes of the machine, or of the container's limit. Nothing where the system does not tell.
std::optional<uint64_t> total_memory(const std::string& root = "");

// Zeroed memory, aligned to 64 bytes or more; pages of a big block cost nothing until they are
// touched. Null when the system refuses.
class MemoryBlock {
 public:
  MemoryBlock() = default;
  explicit MemoryBlock(uint64_t bytes);
  MemoryBlock(MemoryBlock&& other) noexcept;
  MemoryBlock& operator=(MemoryBlock&& other) noexcept;
  ~MemoryBlock();

  std::byte* data() const { return data_; }
  uint64_t size() const { return bytes_; }
  // Of pages of its own, straight from the system.
  bool is_mapped() const;
  // Of those, what nobody has written or read yet: it has cost no memory so far.
  uint64_t untouched_bytes() const;

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace akunu::cpu
