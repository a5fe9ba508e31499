// The memory of the device: every buffer has a label and is counted, and what does not fit is
// refused before it is asked for.
#pragma once

#include <Metal/Metal.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/device_checks.h"

namespace akunu::metal {

// What a Buffer's handle points to.
struct Allocation {
  MTL::Buffer* buffer = nullptr;  // not owned
  uint64_t offset = 0;            // where the Buffer begins in it
  bool mapped = false;            // bytes of a file: never written
};

inline const Allocation& allocation_of(const Buffer& buffer) {
  return *static_cast<const Allocation*>(buffer.handle);
}

class Memory {
 public:
  explicit Memory(MTL::Device* device) : device_(device) {}

  // Zeroed. Throws OutOfMemoryError.
  Buffer allocate(uint64_t bytes, std::string_view label);
  // A part of a weight where its file is mapped, through a buffer over whole pages that it shares with its
  // neighbours; a copy where it lies in no mapping or at an odd place. Throws OutOfMemoryError.
  Buffer import(const WeightPart& part);
  void release(const Buffer& buffer);

  uint64_t available() const;
  std::vector<MemoryUse> uses() const { return ledger_.uses(); }
  MemoryUse use_of(const Buffer& buffer) const {
    const auto& owned = static_cast<const Owned&>(allocation_of(buffer));
    return {owned.label, owned.bytes, owned.mapped};
  }

 private:
  // A buffer over pages of a mapping.
  struct View {
    NS::SharedPtr<MTL::Buffer> buffer;
    std::span<const std::byte> pages;
    std::shared_ptr<const void> owner;
  };
  struct Owned : Allocation {
    NS::SharedPtr<MTL::Buffer> own;    // null for views
    std::shared_ptr<const View> view;  // null for memory of our own
    std::string label;
    uint64_t bytes = 0;
  };

  std::shared_ptr<const View> view_over(const WeightPart& part);
  void refuse_unless_fits(uint64_t bytes, std::string_view what) const;
  Buffer add(std::unique_ptr<Owned> owned, std::byte* contents);

  MTL::Device* device_;
  std::unordered_map<const void*, std::unique_ptr<Owned>> owned_;
  std::vector<std::weak_ptr<const View>> views_;
  MemoryLedger ledger_;
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
  // Null where there is none.
  MTL::Buffer* buffer() const {
    return memory_ == nullptr ? nullptr : allocation_of(block_).buffer;
  }
  const Buffer& block() const { return block_; }
  std::byte* contents() const { return block_.contents; }
  uint64_t size() const { return block_.size; }

 private:
  void swap(OwnedBlock& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(block_, other.block_);
  }
  Memory* memory_ = nullptr;
  Buffer block_;
};

}  // namespace akunu::metal
