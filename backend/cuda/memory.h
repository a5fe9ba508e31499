// The memory of the GPU: every buffer has a label and is counted, and what does not fit is refused
// before it is asked for. The host sees none of it: what it writes and reads passes through one
// pinned block. Weights that do not fit stay in pinned memory of the host, which kernels read directly.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/device_checks.h"
#include "cuda/gpu.h"

namespace akunu::cuda {

// What a Buffer's handle points to.
struct Allocation {
  DevicePointer at = 0;
  bool in_host_memory = false;
};

inline DevicePointer address_of(const Buffer& buffer) {
  return static_cast<const Allocation*>(buffer.handle)->at;
}
inline bool in_host_memory(const Buffer& buffer) {
  return static_cast<const Allocation*>(buffer.handle)->in_host_memory;
}

// Pinned (page-locked) memory of the host: the GPU copies from and to it by itself, and kernels read it by the host's
// own address (unified virtual addressing, which every GPU from sm_80 on has).
class PinnedBlock {
 public:
  PinnedBlock() = default;
  // Throws OutOfMemoryError.
  PinnedBlock(const Gpu& gpu, uint64_t bytes);
  PinnedBlock(PinnedBlock&& other) noexcept { swap(other); }
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedBlock();
  std::byte* contents() const { return contents_; }
  uint64_t size() const { return bytes_; }

 private:
  void swap(PinnedBlock& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(contents_, other.contents_);
    std::swap(bytes_, other.bytes_);
  }
  const Gpu* gpu_ = nullptr;
  std::byte* contents_ = nullptr;
  uint64_t bytes_ = 0;
};

// All of it needs the context (Current) of who calls. Any thread may write and read.
class Memory {
 public:
  explicit Memory(const Gpu& gpu);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Zeroed. Throws OutOfMemoryError.
  Buffer allocate(uint64_t bytes, std::string_view label);
  // A copy of the bytes of a weight. Throws OutOfMemoryError.
  Buffer import(const WeightPart& part);
  // A copy in the host's memory. Throws OutOfMemoryError.
  Buffer import_to_host(const WeightPart& part);
  void release(const Buffer& buffer);

  // Both have come to an end when they return. Throw DeviceError.
  void write(const Buffer& to, uint64_t offset, std::span<const std::byte> bytes);
  void read(const Buffer& from, uint64_t offset, std::span<std::byte> bytes);

  uint64_t available() const;
  std::vector<MemoryUse> uses() const { return ledger_.uses(); }
  MemoryUse use_of(const Buffer& buffer) const;

 private:
  struct Owned : Allocation {
    std::string label;
    uint64_t bytes = 0;
    PinnedBlock block;  // of what is in the host's memory
  };

  Buffer allocate_unset(uint64_t bytes, std::string_view label);
  Buffer add(std::unique_ptr<Owned> owned, uint64_t bytes, std::string_view label);
  void finish(std::string_view what);

  const Gpu& gpu_;
  std::unordered_map<const void*, std::unique_ptr<Owned>> owned_;
  MemoryLedger ledger_;
  std::mutex passing_;  // held by who uses the pinned block
  PinnedBlock pinned_;
  Event passed_ = nullptr;
};

// Memory of the device's own, given back at the end.
class OwnedBlock {
 public:
  OwnedBlock() = default;
  OwnedBlock(Memory& memory, uint64_t bytes, std::string_view label)
      : memory_(&memory), block_(memory.allocate(bytes, label)) {}
  OwnedBlock(OwnedBlock&& other) noexcept { swap(other); }
  OwnedBlock& operator=(OwnedBlock&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnedBlock() {
    if (memory_ != nullptr) memory_->release(block_);
  }
  // 0 where there is none.
  DevicePointer at() const { return memory_ == nullptr ? 0 : address_of(block_); }
  const Buffer& block() const { return block_; }
  uint64_t size() const { return block_.size; }

 private:
  void swap(OwnedBlock& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(block_, other.block_);
  }
  Memory* memory_ = nullptr;
  Buffer block_;
};

}  // namespace akunu::cuda
