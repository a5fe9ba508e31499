#include "cache/sequences.h"

namespace akunu {

SequenceStore::SequenceStore(const std::shared_ptr<Device>& device, uint32_t n_sequences,
                             uint32_t context, uint32_t n_groups)
    : n_sequences_(n_sequences),
      context_(context),
      tokens_(device, uint64_t{n_sequences} * log_stride() * sizeof(uint32_t), "sequences"),
      pages_(device, uint64_t{n_groups} * n_sequences * page_table_stride() * sizeof(uint32_t),
             "sequences"),
      records_(device, uint64_t{n_sequences} * sizeof(SequenceRecord), "sequences"),
      slots_(n_sequences) {
  for (Slot& slot : slots_) {
    slot.pages.resize(n_groups);
    for (std::vector<uint32_t>& pages : slot.pages) pages.reserve(page_table_stride());
  }
}

uint64_t SequenceStore::bytes(uint32_t n_sequences, uint32_t context, uint32_t n_groups) {
  return uint64_t{n_sequences} *
         ((uint64_t{context} + 1) * sizeof(uint32_t) +
          uint64_t{n_groups} * pages_for(context) * sizeof(uint32_t) + sizeof(SequenceRecord));
}

std::optional<uint32_t> SequenceStore::take(std::vector<CacheGroup>& groups, uint32_t positions) {
  const uint32_t n_pages = pages_for(positions);
  for (const CacheGroup& group : groups)
    if (group.pages.n_free() < n_pages) return std::nullopt;
  for (uint32_t index = 0; index < n_sequences_; ++index) {
    Slot& slot = slots_[index];
    if (slot.used) continue;
    slot.used = true;
    for (size_t group = 0; group < groups.size(); ++group) {
      slot.pages[group].resize(n_pages);
      groups[group].pages.take(slot.pages[group]);
    }
    return index;
  }
  return std::nullopt;
}

void SequenceStore::release(std::vector<CacheGroup>& groups, uint32_t slot) {
  for (size_t group = 0; group < groups.size(); ++group) {
    // Last page first: the free list is a stack, so the next taker finds them in order.
    std::vector<uint32_t>& pages = slots_[slot].pages[group];
    for (auto page = pages.rbegin(); page != pages.rend(); ++page)
      groups[group].pages.release(*page);
    pages.clear();
  }
  slots_[slot].used = false;
}

Binding SequenceStore::page_table(uint32_t group, uint32_t slot) const {
  return pages_.binding((uint64_t{page_table_base(group)} + uint64_t{slot} * page_table_stride()) *
                        sizeof(uint32_t));
}

std::span<const uint32_t> SequenceStore::page_numbers(uint32_t group, uint32_t slot) const {
  return slots_[slot].pages[group];
}

Binding SequenceStore::log(uint32_t slot, uint32_t position) const {
  return tokens_.binding((uint64_t{slot} * log_stride() + position) * sizeof(uint32_t));
}

Binding SequenceStore::record(uint32_t slot) const {
  return records_.binding(uint64_t{slot} * sizeof(SequenceRecord));
}

}  // namespace akunu
