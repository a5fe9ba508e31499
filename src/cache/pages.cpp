// Assigns pages to sequences by the rules in pages.h. page_eviction.cpp chooses pages to evict if none is free.
//
// A group is the layers that share a page table; an entry of the table is a page, and an entry may be shared (lent),
// copied, or gone (kNoPage). What a kind of cache needs of a text (all of it, a window, a state) is in
// cache/groups.h.
#include "cache/pages.h"

#include <algorithm>
#include <utility>

namespace akunu {

Pages::Pages(KvCache& cache, CachedTexts& texts) : cache_(cache), texts_(texts) {
  for (CacheGroup& group : cache.groups()) {
    groups_.push_back({group, {}});
    groups_.back().pages.resize(group.pages.n_pages());
  }
}

uint32_t Pages::reusable(const Sequence& sequence, uint32_t most) const {
  for (uint32_t before = most + 1; most > 0 && most < before;) {
    before = most;
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      if (is_of_window(sequence, shape(group))) continue;  // it has it again when it begins
      most = shape(group).ask(
          [&](const auto& kind) { return kind.reusable(sequence.held(group), most); });
    }
  }
  return most;
}

bool Pages::take(uint32_t group, uint32_t& page) {
  PagePool& pool = groups_[group].of.pages;
  if (pool.n_free() == 0 && !evict(group)) return false;
  pool.take(std::span(&page, 1));
  groups_[group].pages[page].last_use = ++n_uses_;
  return true;
}

bool Pages::extend(Sequence& sequence, uint32_t group, uint32_t n_entries) {
  std::vector<uint32_t>& pages = sequence.pages[group];
  while (pages.size() < n_entries) {
    uint32_t page = 0;
    if (!take(group, page)) return false;
    pages.push_back(page);
  }
  return true;
}

bool Pages::own(Sequence& sequence) {
  const uint32_t n_done = sequence.n_done;
  for (uint32_t group = 0; group < groups_.size() && n_done > 0; ++group) {
    const GroupShape& shape = groups_[group].of.shape;
    if (is_of_window(sequence, shape)) continue;
    const uint32_t n_copied = shape.has_states() ? kPagePositions : n_done % kPagePositions;
    for (uint32_t entry = lent(shape, n_done).end; entry < shape.needed(n_done, n_done).end;
         ++entry)
      if (!own(sequence, group, entry, n_copied)) return false;
  }
  return true;
}

bool Pages::own(Sequence& sequence, uint32_t group, uint32_t entry, uint32_t n_positions) {
  PagePool& pool = groups_[group].of.pages;
  uint32_t& own = sequence.pages[group][entry];
  while (pool.references(own) > 1 && pool.n_free() == 0 && evict(group)) continue;
  // Other sequences that hold the page may not need it.
  if (pool.n_free() == 0) give_up(group, own, &sequence);
  if (pool.references(own) == 1) return true;
  uint32_t page = 0;
  if (!pool.take(std::span(&page, 1))) return false;
  cache_.copy_positions(group, own, page, n_positions);
  pool.release(own);
  own = page;
  return true;
}

// Tokens that are in no page, or whose window has lost a page, are forgotten.
void Pages::cut(Sequence& sequence, uint32_t n_tokens) {
  const uint32_t n = reusable(sequence, std::min(sequence.n_done, n_tokens));
  if (n < sequence.n_done) rewind_states(sequence, n);
  sequence.n_done = n;
  sequence.tokens.resize(n);
  for (uint32_t group = 0; group < sequence.pages.size(); ++group) {
    const GroupShape& shape = groups_[group].of.shape;
    size_t n_entries = n == 0 ? 0 : shape.needed(n, n).end;
    if (n > 0 && shape.has_states()) n_entries += sequence.checkpoints.size();
    // Last page first: the free list is a stack, so the next taker finds them in order.
    std::vector<uint32_t>& pages = sequence.pages[group];
    for (; pages.size() > n_entries; pages.pop_back()) give_back(group, pages.back());
  }
}

// The entry that has the state after n positions becomes the current one; later checkpoints are removed
// from the list.
void Pages::rewind_states(Sequence& sequence, uint32_t n) {
  std::vector<uint32_t>& places = sequence.checkpoints;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const auto* const states = std::get_if<StateCache>(&groups_[group].of.shape.kind);
    if (states == nullptr) continue;
    const Held held = sequence.held(group);
    const uint32_t entry = states->entry_of(held, n).value_or(0);
    sequence.n_run = entry == 0 ? held.n_run : places[entry - 1];
    if (entry > 0) std::swap(sequence.pages[group][0], sequence.pages[group][entry]);
  }
  places.resize(static_cast<size_t>(std::ranges::lower_bound(places, n) - places.begin()));
}

void Pages::give_back(uint32_t group, uint32_t& entry) {
  if (const uint32_t page = std::exchange(entry, kNoPage); page != kNoPage)
    groups_[group].of.pages.release(page);
}

void Pages::leave_behind(uint32_t group, uint32_t& entry) {
  if (texts_.most_kept == 0)
    give_back(group, entry);
  else if (entry != kNoPage)
    groups_[group].pages[entry].last_use = ++n_uses_;
}

void Pages::use(const Sequence& sequence) {
  ++n_uses_;
  for (size_t group = 0; group < groups_.size(); ++group)
    for (const uint32_t page : sequence.pages[group])
      if (page != kNoPage) groups_[group].pages[page].last_use = n_uses_;
}

}  // namespace akunu
