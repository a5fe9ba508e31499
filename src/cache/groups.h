// Cache groups: layers that keep the same positions of a text share page numbers, a page table and a
// pool. What is kept depends on the group's kind. Each kind is a small type that answers the same
// questions; SequenceCache asks all groups of a model and takes the least of what they say.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "core/arch.h"
#include "core/format.h"
#include "core/kernel_params.h"

namespace akunu {

constexpr uint32_t kNoPage = 0xffffffff;  // of an entry that holds none

// Pages that `positions` positions need.
constexpr uint32_t pages_for(uint64_t positions) {
  return static_cast<uint32_t>((positions + kPagePositions - 1) / kPagePositions);
}

// A run of entries of a page table. Entry n is that of positions [256 n, 256 (n + 1)).
struct Entries {
  uint32_t first = 0;
  uint32_t end = 0;
  bool contains(uint32_t entry) const { return first <= entry && entry < end; }
  bool operator==(const Entries&) const = default;
};

// Rows see every position before them.
struct FullCache {
  // Entries whose pages rows at positions [n_done, n_positions) read or write. What is in no such
  // entry may go when n_done positions are done.
  Entries needed(uint32_t n_done, uint32_t n_positions) const;
  // The longest prefix, of at most `most` positions, behind which a text can go on with the pages
  // that are there: how much of it another text can reuse, and how far it can rewind.
  uint32_t reusable(std::span<const uint32_t> pages, uint32_t most) const;
  // Pages that one text needs at a time, on its way to n_positions in steps of at most n_rows.
  uint32_t most_pages(uint32_t n_positions, uint32_t n_rows) const;
  // Pages of an old text go from its end: what is before them is of use without them.
  static constexpr bool kGoesFromEnd = true;
  bool operator==(const FullCache&) const = default;
};

// A row sees the last `window` positions, its own included.
struct WindowCache {
  uint32_t window = 0;

  Entries needed(uint32_t n_done, uint32_t n_positions) const;
  uint32_t reusable(std::span<const uint32_t> pages, uint32_t most) const;
  uint32_t most_pages(uint32_t n_positions, uint32_t n_rows) const;
  static constexpr bool kGoesFromEnd = false;  // what comes last is what the next row sees
  bool operator==(const WindowCache&) const = default;
};

using CacheKind = std::variant<FullCache, WindowCache>;

// One layer's part of a page: [n_heads][kPagePositions] rows of `position_bytes`, of keys and as
// much of values.
struct LayerShape {
  uint32_t layer = 0;
  uint32_t n_heads = 0;
  uint64_t position_bytes = 0;
  uint64_t page_bytes() const { return n_heads * kPagePositions * position_bytes; }
};

struct GroupShape {
  CacheKind kind;
  Format format = Format::f16;
  std::vector<LayerShape> layers;

  uint64_t page_bytes() const;  // of one page in all layers
  Entries needed(uint32_t n_done, uint32_t n_positions) const;
  uint32_t reusable(std::span<const uint32_t> pages, uint32_t most) const;
  uint32_t most_pages(uint32_t n_positions, uint32_t n_rows) const;
  bool goes_from_end() const;
};

// The groups of a model, in the order of their first layers: layers of one kind and format are one.
// A layer that reads another one's keys and values is in none. Throws ModelFormatError where a layer
// reads those of a layer that has none, or none that fit.
std::vector<GroupShape> cache_groups(const ArchDescriptor& arch, Format format);

}  // namespace akunu
