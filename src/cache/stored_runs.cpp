// What goes from the cache to the disk and comes back; cache/prefix_disk.h is the disk's side.
//
// 1. What it does. `copy_page` copies what a text that ended has of one page. `fill` puts pages from the
//    disk into those of a text that begins: they are its own, and would be computed otherwise, so
//    nobody else has to make room for them.
// 2. What bounds it. Copies of a page, some megabytes each, between two steps.
#include <algorithm>

#include "cache/saved_positions.h"
#include "cache/sequence_cache.h"

namespace akunu {

const Sequence* SequenceCache::unstored() const {
  for (const Sequence& sequence : kept_)
    if (!sequence.is_stored) return &sequence;
  return nullptr;
}

void SequenceCache::set_stored(uint64_t id) {
  for (Sequence& sequence : kept_)
    if (sequence.id == id) sequence.is_stored = true;
}

void SequenceCache::forget_unread() {
  for (Sequence& sequence : kept_) {
    if (!sequence.unread.empty()) sequence.is_stored = false;
    sequence.unread.clear();
  }
}

RunPages SequenceCache::copy_page(const Sequence& sequence, uint32_t entry,
                                  uint32_t n_positions) const {
  RunPages copied{.n_positions = n_positions, .groups = 0, .bytes = {}};
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const std::vector<uint32_t>& pages = sequence.pages[group];
    if (entry >= pages.size() || pages[entry] == kNoPage) continue;
    copied.groups |= uint64_t{1} << group;
    const size_t n_before = copied.bytes.size();
    copied.bytes.resize(n_before + saved_page_bytes(groups_[group].of.shape, n_positions));
    cache_.read_positions(group, pages[entry], n_positions,
                          std::span(copied.bytes).subspan(n_before));
  }
  return copied;
}

// Positions that the text can begin with: more than n_positions, which the cache has, or 0.
uint32_t SequenceCache::usable(const RunsOnDisk& from_disk, const Beginning& beginning,
                               uint32_t n_positions) const {
  const uint32_t n = std::min({from_disk.n_positions, beginning.n_prompt, beginning.most_reused,
                               static_cast<uint32_t>(beginning.tokens.size()) - 1});
  const uint32_t first = from_disk.first_entry;
  // Since it was read the cache may have lost what is before it.
  if (n <= n_positions || n_positions / kPagePositions < first) return 0;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const Entries needed = groups_[group].of.shape.needed(n, n);
    for (uint32_t entry = std::max(n_positions / kPagePositions, needed.first);
         entry < pages_for(n); ++entry)
      if (entry - first >= from_disk.pages.size() ||
          (from_disk.pages[entry - first].groups >> group & 1) == 0)
        return 0;
  }
  return n;
}

// Of what a text took over from the cache, the page that is not full: the disk has all of it.
void SequenceCache::drop_part_of_page(Sequence& sequence) {
  sequence.n_done -= sequence.n_done % kPagePositions;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    std::vector<uint32_t>& pages = sequence.pages[group];
    for (; pages.size() > sequence.n_done / kPagePositions; pages.pop_back())
      release(group, pages.back());
  }
}

// Fills the pages of a text that begins, behind those that it has.
bool SequenceCache::fill(Sequence& sequence, const RunsOnDisk& from_disk, uint32_t n_positions) {
  const uint32_t first_new = sequence.n_done / kPagePositions;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    std::vector<uint32_t>& pages = sequence.pages[group];
    const GroupShape& shape = groups_[group].of.shape;
    const uint32_t first = std::max(first_new, shape.needed(n_positions, n_positions).first);
    while (pages.size() < first) pages.push_back(kNoPage);  // no row that comes sees these
    if (!extend(sequence, group, pages_for(n_positions))) return false;
    for (uint32_t entry = first; entry < pages_for(n_positions); ++entry) {
      const RunPages& from = from_disk.pages[entry - from_disk.first_entry];
      uint64_t n_before = 0;
      for (uint32_t other = 0; other < group; ++other)
        if (from.groups >> other & 1)
          n_before += saved_page_bytes(groups_[other].of.shape, from.n_positions);
      cache_.write_positions(
          group, pages[entry], from.n_positions,
          std::span(from.bytes).subspan(n_before, saved_page_bytes(shape, from.n_positions)));
    }
  }
  sequence.n_done = n_positions;
  return true;
}

}  // namespace akunu
