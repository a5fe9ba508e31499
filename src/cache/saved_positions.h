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
  // Of each group, the first entry of the page table whose page is here: windows keep none before it.
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

// Bytes of one page of a group with so many positions, in all layers.
uint64_t saved_page_bytes(const GroupShape& group, uint32_t n_positions);

// Bytes of n positions of a text whose pages begin with these entries.
uint64_t saved_bytes(std::span<const GroupShape> groups, std::span<const uint32_t> first_entries,
                     uint32_t n);

// The first entries of a text of n positions where every group still has what is worth saving: all
// that the next rows see, and what a text sees that goes back by up to a page.
std::vector<uint32_t> first_entries_to_save(std::span<const GroupShape> groups, uint32_t n);

}  // namespace akunu
