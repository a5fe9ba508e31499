#include "cache/sequence_store.h"

#include <utility>

namespace akunu {
namespace {

constexpr uint64_t kOptionBytes = uint64_t{kMaxOptionWords} * sizeof(uint32_t);
constexpr uint64_t kLogprobBytes = uint64_t{kLogprobPlaces} * sizeof(TokenLogprobs);

}  // namespace

SequenceStore::SequenceStore(const std::shared_ptr<Device>& device, uint32_t n_sequences,
                             uint32_t context, std::span<const GroupShape> groups)
    : n_sequences_(n_sequences),
      context_(context),
      page_table_stride_(table_entries(groups, context)),
      tokens_(device, uint64_t{n_sequences} * log_stride() * sizeof(uint32_t), "sequences"),
      pages_(device, groups.size() * n_sequences * page_table_stride() * sizeof(uint32_t),
             "sequences"),
      records_(device, uint64_t{n_sequences} * sizeof(SequenceRecord), "sequences"),
      options_(device, uint64_t{n_sequences} * kOptionBytes, "sequences"),
      logprobs_(device, uint64_t{n_sequences} * kLogprobBytes, "sequences"),
      slots_(n_sequences) {}

uint64_t SequenceStore::bytes(uint32_t n_sequences, uint32_t context,
                              std::span<const GroupShape> groups) {
  return uint64_t{n_sequences} * (update_bytes(context, groups) + kLogprobBytes);
}

uint64_t SequenceStore::update_bytes(uint32_t context, std::span<const GroupShape> groups) {
  return (uint64_t{context} + 1) * sizeof(uint32_t) +
         groups.size() * table_entries(groups, context) * sizeof(uint32_t) +
         sizeof(SequenceRecord) + kOptionBytes;
}

std::optional<uint32_t> SequenceStore::take() {
  for (uint32_t slot = 0; slot < n_sequences_; ++slot) {
    if (slots_[slot].used) continue;
    slots_[slot].used = true;
    return slot;
  }
  return std::nullopt;
}

Sequence SequenceStore::release(uint32_t slot) {
  slots_[slot].used = false;
  return std::exchange(slots_[slot].sequence, {});
}

Binding SequenceStore::page_table(uint32_t group, uint32_t slot, uint32_t first_page) const {
  return pages_.binding(
      (uint64_t{page_table_base(group)} + uint64_t{slot} * page_table_stride() + first_page) *
      sizeof(uint32_t));
}

Binding SequenceStore::log(uint32_t slot, uint32_t position) const {
  return tokens_.binding((uint64_t{slot} * log_stride() + position) * sizeof(uint32_t));
}

Binding SequenceStore::record(uint32_t slot) const {
  return records_.binding(uint64_t{slot} * sizeof(SequenceRecord));
}

Binding SequenceStore::options(uint32_t slot) const {
  return options_.binding(uint64_t{slot} * kOptionBytes);
}

Binding SequenceStore::logprobs(uint32_t slot, uint32_t place) const {
  return logprobs_.binding(uint64_t{slot} * kLogprobBytes + place * sizeof(TokenLogprobs));
}

}  // namespace akunu
