// What goes from the cache to the disk and comes back; cache/prefix_disk.h is the disk's side.
//
// 1. What it does. `copy` copies what a text that ended has of one page, or its states. `fill` puts pages from the
//    disk into those of a text that begins: they are its own, and would be computed otherwise, so
//    no other text has to make room for them.
// 2. What bounds it. Copies of a page, some megabytes each, between two steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/prefix_disk.h"
#include "cache/prefixes.h"

namespace akunu {

// Verbs: next, copy, fill. For one thread, and only while no submission is in flight.
class StoredRuns {
 public:
  StoredRuns(KvCache& cache, CachedTexts& texts, Pages& pages)
      : cache_(cache), texts_(texts), pages_(pages) {}

  // The first text to go of those that the disk may lack something of; null: none.
  const Sequence* next() const;
  void set_stored(uint64_t id);
  // No reading task will come: texts end where they were read to.
  void forget_unread();
  // After how many positions, up to n, a kept sequence has its states; empty in a cache without states.
  std::vector<uint32_t> places_of_states(const Sequence& sequence, uint32_t n) const;
  // What a kept sequence has of the run: positions of one page, or its states at such a place.
  RunPages copy(const Sequence& sequence, const MissingRun& missing) const;

  // Positions that a text can begin with: more than n_positions, which the cache has, or 0.
  uint32_t usable(const RunsOnDisk& from_disk, const Beginning& beginning,
                  uint32_t n_positions) const;
  // Fills the pages of a text that begins, after the whole ones that it has. False where no page is free.
  bool fill(Sequence& sequence, const RunsOnDisk& from_disk, uint32_t n_positions);

 private:
  RunPages copy_states(const Sequence& sequence, uint32_t place) const;
  RunPages copy_page(const Sequence& sequence, uint32_t entry, uint32_t n_positions) const;
  bool drop_part_of_page(Sequence& sequence);
  std::span<const std::byte> bytes_of(const RunPages& pages, uint32_t group) const;

  KvCache& cache_;
  CachedTexts& texts_;
  Pages& pages_;
};

}  // namespace akunu
