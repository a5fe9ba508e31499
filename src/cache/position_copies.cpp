#include "cache/position_copies.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace akunu {
namespace {

uint32_t size_of(const std::vector<uint32_t>& list) { return static_cast<uint32_t>(list.size()); }

}  // namespace

void PositionCopies::read(uint32_t slot, SavedPositions& saved) const {
  const Sequence& sequence = texts_.running[slot];
  uint64_t n_bytes = 0;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    const std::vector<uint32_t>& pages = sequence.pages[group];
    const GroupShape& shape = pages_.shape(group);
    uint32_t& first = saved.first_entries[group];
    const uint32_t end = saved_entries(shape, sequence.n_done);
    uint32_t entry = end;
    while (entry > first && pages[entry - 1] != kNoPage) --entry;
    first = entry;  // what a window left behind may have gone
    for (; entry < end; ++entry) {
      const uint32_t n = saved_of(shape, entry, sequence.n_done);
      const uint64_t of_page = saved_page_bytes(shape, n);
      const auto into = std::span(saved.bytes).subspan(n_bytes, of_page);
      cache_.read_positions(group, pages[entry], n, into);
      if (shape.has_states()) clear_unset_states(shape, sequence.n_done, into);
      n_bytes += of_page;
    }
  }
  saved.bytes.resize(n_bytes);
}

SavedPositions PositionCopies::room(uint32_t slot) const {
  const uint32_t n = texts_.running[slot].n_done;
  std::vector<GroupShape> groups;
  SavedPositions room;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    groups.push_back(pages_.shape(group));
    room.first_entries.push_back(pages_.shape(group).needed(n, n).first);
  }
  room.bytes.resize(saved_bytes(groups, room.first_entries, n));
  return room;
}

void PositionCopies::write(const Sequence& sequence, const SavedPositions& saved, uint32_t n) {
  std::span<const std::byte> bytes = saved.bytes;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    const GroupShape& shape = pages_.shape(group);
    for (uint32_t entry = saved.first_entries[group]; entry < saved_entries(shape, n); ++entry) {
      const std::vector<uint32_t>& pages = sequence.pages[group];
      const uint32_t n_positions = saved_of(shape, entry, n);
      const std::span<const std::byte> of_page = bytes.first(saved_page_bytes(shape, n_positions));
      bytes = bytes.subspan(of_page.size());
      if (entry < pages.size() && cache_.groups()[group].pages.references(pages[entry]) == 1)
        cache_.write_positions(group, pages[entry], n_positions, of_page);
    }
  }
  assert(bytes.empty());
}

// Entries of the saved pages of a group that the prefix has, too.
Entries PositionCopies::shared_with(const Prefix& prefix, uint32_t group,
                                    const SavedPositions& saved) const {
  const Entries shared = lent(pages_.shape(group), prefix.n_positions);
  const uint32_t first = std::max(shared.first, saved.first_entries[group]);
  return {first, std::max(first, shared.end)};
}

// How many of n saved positions can come back: there is room for their pages, and a text can continue after them.
uint32_t PositionCopies::restorable(const Prefix& prefix, const SavedPositions& saved, uint32_t n) {
  uint32_t n_entries = pages_for(n);
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    const Entries shared = shared_with(prefix, group, saved);
    const uint32_t first = saved.first_entries[group];
    const GroupShape& shape = pages_.shape(group);
    const uint32_t n_own = pages_.available(group, prefix.lent_pages(shape, group));
    if (shape.has_states()) {
      if (first > 0 || n_own == 0) return 0;
      continue;
    }
    const bool comes_to_shared = n_own >= shared.first - first;
    n_entries =
        std::min(n_entries, first + n_own + (comes_to_shared ? shared.end - shared.first : 0));
  }
  uint32_t most = std::min(n, n_entries * kPagePositions);
  for (uint32_t before = most + 1; most > 0 && most < before;) {
    before = most;
    for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
      const GroupShape& shape = pages_.shape(group);
      // Any page but kNoPage.
      std::vector<uint32_t> pages(shape.has_states() ? 1 : n_entries, 0);
      std::fill_n(pages.begin(), std::min(size_of(pages), saved.first_entries[group]), kNoPage);
      const Held held{pages, n, {}, n};
      most = shape.ask([&](const auto& kind) { return kind.reusable(held, most); });
    }
  }
  return most;
}

uint32_t PositionCopies::restore(uint64_t id, const PrefixKey& key,
                                 std::span<const uint32_t> tokens, const SavedPositions& saved) {
  if (texts_.most_kept == 0) return 0;
  const auto n = static_cast<uint32_t>(tokens.size());
  const Prefix prefix = prefixes_.longest({.id = id, .key = key, .tokens = tokens, .n_prompt = n});
  // Before anything is evicted: no prefix goes for positions that are of no use.
  const uint32_t n_restored = restorable(prefix, saved, n);
  if (n_restored <= prefix.n_positions) return prefix.n_positions;
  Sequence sequence;
  sequence.id = id;
  sequence.key = key;
  sequence.tokens.assign(tokens.begin(), tokens.begin() + n_restored);
  sequence.n_prompt = n_restored;
  sequence.pages.resize(pages_.n_groups());
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    sequence.pages[group].assign(saved_entries(pages_.shape(group), n_restored), kNoPage);
    const Entries shared = shared_with(prefix, group, saved);
    for (uint32_t entry = shared.first; entry < shared.end; ++entry) {
      sequence.pages[group][entry] = prefix.sequence->pages[group][entry];
      pages_.share(group, sequence.pages[group][entry]);
    }
  }
  // From here on the prefix may go.
  texts_.restored = &sequence;
  bool there_is_room = true;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group)
    for (uint32_t entry = saved.first_entries[group]; entry < size_of(sequence.pages[group]);
         ++entry)
      if (uint32_t& page = sequence.pages[group][entry]; page == kNoPage)
        there_is_room = there_is_room && pages_.take(group, page);
  texts_.restored = nullptr;
  if (!there_is_room) {
    assert(false);  // it was counted wrongly
    pages_.cut(sequence, 0);
    return 0;
  }
  write(sequence, saved, n);
  sequence.n_done = n_restored;
  sequence.n_run = n;  // whose state was saved
  prefixes_.add(std::move(sequence));
  return n_restored;
}

}  // namespace akunu
