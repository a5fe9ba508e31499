// What the device knows of each conversation: its token log, its page tables, its record. A slot is
// taken when a request is admitted, with every page that it may come to need, and given back whole.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/pages.h"
#include "core/device.h"

namespace akunu {

class SequenceStore {
 public:
  // `context`: positions per sequence.
  SequenceStore(const std::shared_ptr<Device>& device, uint32_t n_sequences, uint32_t context,
                uint32_t n_groups);

  static uint64_t bytes(uint32_t n_sequences, uint32_t context, uint32_t n_groups);

  uint32_t n_sequences() const { return n_sequences_; }
  uint32_t context() const { return context_; }
  uint32_t log_stride() const { return context_ + 1; }  // room for the token picked last
  uint32_t page_table_stride() const { return pages_for(context_); }
  uint32_t page_table_base(uint32_t group) const {
    return group * n_sequences_ * page_table_stride();
  }

  const Buffer& tokens() const { return tokens_.get(); }
  const Buffer& pages() const { return pages_.get(); }
  const Buffer& records() const { return records_.get(); }

  // A free slot with pages for `positions` positions in every group, or nothing.
  std::optional<uint32_t> take(std::vector<CacheGroup>& groups, uint32_t positions);
  void release(std::vector<CacheGroup>& groups, uint32_t slot);

  // Places and contents of the slot's page tables, to be sent before its first step.
  Binding page_table(uint32_t group, uint32_t slot) const;
  std::span<const uint32_t> page_numbers(uint32_t group, uint32_t slot) const;
  Binding log(uint32_t slot, uint32_t position) const;
  Binding record(uint32_t slot) const;

 private:
  struct Slot {
    bool used = false;
    std::vector<std::vector<uint32_t>> pages;  // per group; capacity page_table_stride
  };
  uint32_t n_sequences_;
  uint32_t context_;
  OwnedBuffer tokens_;   // uint32 [n_sequences, log_stride]
  OwnedBuffer pages_;    // uint32 [n_groups, n_sequences, page_table_stride]
  OwnedBuffer records_;  // SequenceRecord [n_sequences]
  std::vector<Slot> slots_;
};

}  // namespace akunu
