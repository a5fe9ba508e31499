// How a text gets its pages and gives them back.
//
// 1. What it does. `begin` finds the cached sequence, running or ended, that has the longest prefix
//    in common with a new one, and shares its pages. `extend` takes pages as a text grows. `end` keeps the pages of an
//    ended sequence for later ones.
// 2. What bounds it. The host between two steps: a search goes over all kept sequences, an eviction
//    over all pages of a group.
// 3. What is done about it. The number of kept sequences is limited. Pages are looked at only when none is free.
#include "cache/sequences.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace akunu {
namespace {

// Entries that the device's page table has. For states that is the first one, the current state; the others are
// checkpoints, which only the host knows.
uint32_t n_table_entries(const GroupShape& shape, const Sequence& sequence, size_t group) {
  const size_t n = sequence.pages[group].size();
  return static_cast<uint32_t>(shape.has_states() ? std::min<size_t>(n, 1) : n);
}

}  // namespace

Sequences::Sequences(KvCache& cache, CachedTexts& texts, Pages& pages, EncodedWindows& windows,
                     Prefixes& prefixes, StoredRuns& runs, PositionCopies& copies, uint32_t n_rows)
    : cache_(cache),
      texts_(texts),
      store_(texts.running),
      pages_(pages),
      windows_(windows),
      prefixes_(prefixes),
      runs_(runs),
      copies_(copies),
      n_rows_(n_rows) {
  updates_.reserve(pages_.n_groups());
}

std::optional<uint32_t> Sequences::begin(const Beginning& beginning, const RunsOnDisk* from_disk) {
  const MovedPositions* const moved = beginning.moved;
  const Prefix prefix =
      moved == nullptr ? prefixes_.find(beginning) : Prefix{.end = PrefixEnd::whole};
  const uint32_t n_on_disk = from_disk == nullptr || moved != nullptr
                                 ? 0
                                 : runs_.usable(*from_disk, beginning, prefix.n_positions);
  const uint32_t n_done = moved != nullptr ? moved->n : std::max(prefix.n_positions, n_on_disk);
  const auto n_entries = [&](const GroupShape& shape) {
    const Entries needed = shape.needed(n_done, beginning.n_positions);
    return std::min(needed.end, needed.first + shape.most_pages(beginning.n_positions, n_rows_));
  };
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    const GroupShape& shape = pages_.shape(group);
    if (beginning.key.window != 0 && shape.is_cross()) continue;
    // What a window leaves behind between the cache's part and the disk's takes no page.
    const uint32_t n_there = moved != nullptr
                                 ? moved->saved.first_entries[group]
                                 : std::max(lent(shape, prefix.n_positions).end,
                                            shape.needed(n_done, beginning.n_positions).first);
    // Shared pages that are already outside its window are not needed: they can be evicted.
    const uint32_t first_needed = shape.needed(n_done, beginning.n_positions).first;
    if (pages_.available(group, prefix.lent_pages(shape, group, first_needed)) <
        n_entries(shape) - n_there)
      return std::nullopt;
  }
  if (beginning.key.window != 0 && !windows_.take(beginning.key.window)) return std::nullopt;
  const std::optional<uint32_t> slot = store_.take();
  if (!slot) return std::nullopt;

  Sequence& sequence = store_[*slot];
  sequence.id = beginning.id;
  sequence.key = beginning.key;
  sequence.prefix_end = prefix.end;
  sequence.tokens.reserve(store_.log_stride());
  sequence.unread.reserve(store_.log_stride());  // so that nothing is allocated when it ends
  sequence.tokens.assign(beginning.tokens.begin(), beginning.tokens.end());
  sequence.n_prompt = beginning.n_prompt;
  sequence.pages.resize(pages_.n_groups());
  // As many as a text can ever have: `take_unsent` hands out pointers into these lists.
  for (uint32_t group = 0; group < pages_.n_groups(); ++group)
    sequence.pages[group].reserve(std::max(
        store_.page_table_stride(), pages_.shape(group).most_pages(store_.context(), n_rows_)));
  sequence.n_sent.assign(pages_.n_groups(), 0);
  windows_.lend(sequence);
  sequence.n_from_disk = n_on_disk > 0 ? n_on_disk - prefix.n_positions : 0;
  bool there_is_room = true;
  if (moved != nullptr) {
    for (uint32_t group = 0; group < pages_.n_groups(); ++group)
      sequence.pages[group].assign(moved->saved.first_entries[group], kNoPage);
  } else {
    prefixes_.lend(prefix, sequence);
    there_is_room = n_on_disk > 0 || pages_.own(sequence);
  }
  if (n_on_disk > 0) {
    there_is_room = runs_.fill(sequence, *from_disk, n_on_disk);
    const bool is_whole = n_on_disk + 1 == beginning.tokens.size();
    sequence.prefix_end = is_whole             ? PrefixEnd::whole
                          : from_disk->goes_on ? PrefixEnd::differs
                                               : PrefixEnd::ends;
  }
  for (uint32_t group = 0; group < pages_.n_groups(); ++group)
    there_is_room = there_is_room && pages_.extend(sequence, group, n_entries(pages_.shape(group)));
  if (there_is_room && moved != nullptr) {
    copies_.write(sequence, moved->saved, moved->n);
    sequence.n_done = moved->n;
    sequence.n_exact = moved->n_exact;
  }
  if (there_is_room) return slot;
  assert(false);  // available() counted wrongly
  discard(*slot);
  return std::nullopt;
}

bool Sequences::extend(uint32_t slot, uint32_t n_positions) {
  Sequence& sequence = store_[slot];
  for (uint32_t group = 0; group < pages_.n_groups(); ++group)
    if (!pages_.extend(sequence, group,
                       pages_.shape(group).needed(sequence.n_done, n_positions).end))
      return false;
  return true;
}

uint32_t Sequences::covered(uint32_t slot) const {
  uint64_t least = store_.context();
  for (uint32_t group = 0; group < pages_.n_groups(); ++group)
    least = std::min(least, pages_.shape(group).ask([&](const auto& kind) {
      return kind.covered(store_[slot].pages[group].size());
    }));
  return static_cast<uint32_t>(least);
}

void Sequences::done(uint32_t slot, uint32_t n) {
  Sequence& sequence = store_[slot];
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    const GroupShape& shape = pages_.shape(group);
    const uint32_t end = shape.needed(n, n).first;
    for (uint32_t i = shape.needed(sequence.n_done, n).first; i < end; ++i)
      pages_.leave_behind(group, sequence.pages[group][i]);
  }
  sequence.n_done = sequence.n_run = n;
}

void Sequences::ran(uint32_t slot, uint32_t n) {
  Sequence& sequence = store_[slot];
  sequence.n_run = std::max(sequence.n_done, n);
}

bool Sequences::checkpoint(uint32_t slot) {
  Sequence& sequence = store_[slot];
  const auto has_states = [&](uint32_t group) { return pages_.shape(group).has_states(); };
  uint32_t n_most = 0;
  for (const CacheGroup& group : cache_.groups())
    if (const auto* states = std::get_if<StateCache>(&group.shape.kind))
      n_most = states->n_checkpoints;
  std::vector<uint32_t>& places = sequence.checkpoints;
  if (n_most == 0 || std::ranges::find(places, sequence.n_done) != places.end()) return true;
  if (places.size() == n_most) {  // the first one goes
    places.erase(places.begin());
    for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
      if (!has_states(group)) continue;
      pages_.give_back(group, sequence.pages[group][1]);
      sequence.pages[group].erase(sequence.pages[group].begin() + 1);
    }
  }
  const auto n_entries = static_cast<uint32_t>(2 + places.size());
  bool there_is_room = true;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    if (!has_states(group)) continue;
    there_is_room = there_is_room && pages_.extend(sequence, group, n_entries);
    if (there_is_room)
      cache_.copy_positions(group, sequence.pages[group][0], sequence.pages[group].back(),
                            kPagePositions);
  }
  if (there_is_room) {
    places.push_back(sequence.n_done);
    return true;
  }
  for (uint32_t group = 0; group < pages_.n_groups(); ++group)
    if (has_states(group) && sequence.pages[group].size() == n_entries) {
      pages_.give_back(group, sequence.pages[group].back());
      sequence.pages[group].pop_back();
    }
  return false;
}

uint32_t Sequences::most_again() const {
  uint32_t most = kNone;
  for (const CacheGroup& group : cache_.groups())
    if (const auto* states = std::get_if<StateCache>(&group.shape.kind))
      most = std::min(most, states->n_kept - 1);
  return most;
}

bool Sequences::has_unsent(uint32_t slot) const {
  const Sequence& sequence = store_[slot];
  for (uint32_t group = 0; group < pages_.n_groups(); ++group)
    if (sequence.n_sent[group] < n_table_entries(pages_.shape(group), sequence, group)) return true;
  return false;
}

std::span<const Update> Sequences::take_unsent(uint32_t slot) {
  updates_.clear();
  Sequence& sequence = store_[slot];
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    // Entries that the rows to come never read are not sent: the device may have anything there.
    const std::vector<uint32_t>& pages = sequence.pages[group];
    const uint32_t first_needed =
        pages_.shape(group).needed(sequence.n_done, sequence.n_done).first;
    const uint32_t n = n_table_entries(pages_.shape(group), sequence, group);
    const uint32_t first = std::max(first_needed, std::exchange(sequence.n_sent[group], n));
    if (first < n)
      updates_.push_back({store_.page_table(group, slot, first),
                          std::as_bytes(std::span(pages).subspan(first, n - first))});
  }
  return updates_;
}

// Frees the slot. What an encoder made stays with its window.
Sequence Sequences::release(uint32_t slot) {
  Sequence sequence = store_.release(slot);
  windows_.leave(sequence);
  return sequence;
}

void Sequences::end(uint32_t slot, uint32_t n_kept) { prefixes_.keep(release(slot), n_kept); }

void Sequences::set_aside(uint32_t slot) {
  Sequence sequence = release(slot);
  pages_.cut(sequence, texts_.most_kept > 0 ? kNone : 0);
  prefixes_.add(std::move(sequence));
}

void Sequences::discard(uint32_t slot) {
  Sequence sequence = release(slot);
  pages_.cut(sequence, 0);
}

}  // namespace akunu
