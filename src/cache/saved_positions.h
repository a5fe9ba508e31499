// Keys and values of a text as bytes, as they leave the cache and come back into it: what a saved
// session has of its tokens. Who reads them in gets the bits that were written out, or computes the
// tokens again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/groups.h"

namespace akunu {

struct SavedPositions {
  // Of each group, the first entry of the page table whose page is here: windows keep none before it. Of
  // states entry 0 alone is here, the one after the last position, as a whole.
  std::vector<uint32_t> first_entries;
  // Group after group and entry after entry, for each layer the keys of the page's positions and then,
  // where it has any, their values: [n_heads][n_positions] rows of their bytes.
  std::vector<std::byte> bytes;
};

// Positions of a text of n that the page of an entry holds.
constexpr uint32_t positions_in(uint32_t entry, uint32_t n) {
  const uint32_t first = entry * kPagePositions;
  return first >= n ? 0 : n - first < kPagePositions ? n - first : kPagePositions;
}

// Entries of a text of n positions, from 0 on, and of how many positions the page of one is saved.
inline uint32_t saved_entries(const GroupShape& group, uint32_t n) {
  return group.has_states() ? 1 : pages_for(n);
}
inline uint32_t saved_of(const GroupShape& group, uint32_t entry, uint32_t n) {
  return group.has_states() ? 1 : positions_in(entry, n);
}

// Bytes of one page of a group with so many positions, in all layers; a page of states is saved whole.
uint64_t saved_page_bytes(const GroupShape& group, uint32_t n_positions);

// Bytes of n positions of a text whose pages begin with these entries.
uint64_t saved_bytes(std::span<const GroupShape> groups, std::span<const uint32_t> first_entries,
                     uint32_t n);

// Zeros in the places of a saved page of states that a text of n positions has not written: an earlier text of that
// page may have left its numbers there.
void clear_unset_states(const GroupShape& shape, uint32_t n, std::span<std::byte> page);

// The first entries of a text of n positions where every group still has what is worth saving: all
// that the next rows see, and what a text sees that goes back by up to a page.
std::vector<uint32_t> first_entries_to_save(std::span<const GroupShape> groups, uint32_t n);

}  // namespace akunu
