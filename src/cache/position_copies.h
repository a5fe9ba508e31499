// Positions of texts that leave the cache as bytes, for a file or for a text that moved, and come back. saved_positions.h
// says how they lie.
//
// 1. What it does. `read` copies what a text has; `restore` makes a kept sequence of it, as if a text had just ended
//    that read these tokens as its prompt.
// 2. What bounds it. Copies between host and device, of a few kilobytes each where a page is not full.
// 3. What it must not do. Take pages that a text needs: what a text begins like is shared, not copied, and
//    where too few pages are spare, less is restored. The rest is computed again by the next prompt that has it.
#pragma once

#include <cstdint>
#include <span>

#include "cache/kv_cache.h"
#include "cache/prefixes.h"
#include "cache/saved_positions.h"

namespace akunu {

// Verbs: read, write, restore. For one thread, and only while no submission is in flight.
class PositionCopies {
 public:
  PositionCopies(KvCache& cache, CachedTexts& texts, Pages& pages, Prefixes& prefixes)
      : cache_(cache), texts_(texts), pages_(pages), prefixes_(prefixes) {}

  // Room for all that the slot's next rows see.
  SavedPositions room(uint32_t slot) const;
  // Copies what the slot has of its positions. `saved` says from which entries on, and has room.
  void read(uint32_t slot, SavedPositions& saved) const;
  // Into the pages that the sequence has for these n positions. Those that it shares have the same bits.
  void write(const Sequence& sequence, const SavedPositions& saved, uint32_t n);
  // Keeps a saved text, for others to continue; returns how many of its positions are there now: as many as have room
  // after spare pages were evicted; 0 where no text is kept. `saved` has as many bytes as it must.
  uint32_t restore(uint64_t id, const PrefixKey& key, std::span<const uint32_t> tokens,
                   const SavedPositions& saved);

 private:
  Entries shared_with(const Prefix& prefix, uint32_t group, const SavedPositions& saved) const;
  uint32_t restorable(const Prefix& prefix, const SavedPositions& saved, uint32_t n);

  KvCache& cache_;
  CachedTexts& texts_;
  Pages& pages_;
  Prefixes& prefixes_;
};

}  // namespace akunu
