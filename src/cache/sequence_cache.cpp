// Who has which pages, and what goes when there are none left. sequence_cache.h has the rules.
//
// 1. What it does. `begin` finds the cached sequence, running or ended, that has the longest prefix
//    in common with a new one (`find`: prefix_search.cpp), and shares its pages (`share`). `extend` allocates pages as
//    a text grows. `end` keeps the pages of an ended sequence for later ones. A group is the layers
//    that share a page table; an entry of the table is a page, and an entry may be shared (lent),
//    copied, or gone (kNoPage). A window of speech, once encoded, has pages of its own, which all texts
//    of it share (`take_window`); one that no text reads is forgotten when another needs its pages.
// 2. What bounds it. The host between two steps: a search goes over all kept sequences, an eviction
//    over all pages of a group.
// 3. What is done about it. At most kMostKept sequences are kept. Pages are looked at only when none is free.
// 4. Where to change it. What goes when no page is free: page_eviction.cpp. What a kind of cache needs
//    of a text (all of it, a window, a state): cache/groups.h, which this file asks.
#include "cache/sequence_cache.h"

#include <algorithm>
#include <cassert>
#include <ranges>
#include <utility>

namespace akunu {
namespace {

// More would cost more to search than a long prefix saves.
constexpr uint32_t kMostKept = 64;

// Whether `tokens` are how `first`, and `second` behind it, begin.
bool is_beginning(std::span<const uint32_t> tokens, std::span<const uint32_t> first,
                  std::span<const uint32_t> second = {}) {
  const uint32_t n = common_prefix(tokens, first);
  return n == first.size() ? common_prefix(tokens.subspan(n), second) == tokens.size() - n
                           : n == tokens.size();
}

// Entries that a sequence can share which takes over n positions; what else it needs is copied.
Entries lent(const GroupShape& shape, uint32_t n) {
  return shape.ask([&](const auto& kind) { return kind.lent(n); });
}

// Entries that the device's page table has. Of states the first one, the current state; those behind
// it are checkpoints, which only the host knows.
uint32_t n_table_entries(const GroupShape& shape, const Sequence& sequence, size_t group) {
  const size_t n = sequence.pages[group].size();
  return static_cast<uint32_t>(shape.has_states() ? std::min<size_t>(n, 1) : n);
}

std::span<const uint32_t> shared_tokens(const Sequence& sequence) {
  return std::span(sequence.tokens).first(n_shared(sequence));
}

}  // namespace

SequenceCache::SequenceCache(KvCache& cache, SequenceStore& store, uint32_t n_rows, bool keep,
                             bool looks_ahead)
    : cache_(cache),
      store_(store),
      n_rows_(n_rows),
      most_kept_(keep ? kMostKept : 0),
      looks_ahead_(looks_ahead) {
  for (CacheGroup& group : cache.groups()) {
    groups_.push_back({group, {}});
    groups_.back().pages.resize(group.pages.n_pages());
  }
  kept_.reserve(most_kept_);
  updates_.reserve(groups_.size());
}

// --- what a new sequence takes over ------------------------------------------------------------

// The longest prefix, of at most `most` positions, that every group still has.
uint32_t SequenceCache::reusable(const Sequence& sequence, uint32_t most) const {
  for (uint32_t before = most + 1; most > 0 && most < before;) {
    before = most;
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      if (is_of_window(sequence.key, group)) continue;  // it has it again when it begins
      most = groups_[group].of.shape.ask(
          [&](const auto& kind) { return kind.reusable(sequence.held(group), most); });
    }
  }
  return most;
}

std::optional<uint32_t> SequenceCache::begin(const Beginning& beginning,
                                             const RunsOnDisk* from_disk) {
  const MovedPositions* const moved = beginning.moved;
  const Source source =
      moved == nullptr ? find(beginning) : Source{nullptr, std::nullopt, 0, 0, PrefixEnd::whole};
  const uint32_t n_on_disk = from_disk == nullptr || moved != nullptr
                                 ? 0
                                 : usable(*from_disk, beginning, source.n_positions);
  const uint32_t n_done = moved != nullptr ? moved->n : std::max(source.n_positions, n_on_disk);
  const auto n_entries = [&](const GroupShape& shape) {
    const Entries needed = shape.needed(n_done, beginning.n_positions);
    return std::min(needed.end, needed.first + shape.most_pages(beginning.n_positions, n_rows_));
  };
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const GroupShape& shape = groups_[group].of.shape;
    if (is_of_window(beginning.key, group)) continue;
    // What a window leaves behind between the cache's part and the disk's takes no page.
    const uint32_t n_there = moved != nullptr
                                 ? moved->saved.first_entries[group]
                                 : std::max(lent(shape, source.n_positions).end,
                                            shape.needed(n_done, beginning.n_positions).first);
    // Shared pages that are already behind its window are not needed: they can be evicted.
    const uint32_t first_needed = shape.needed(n_done, beginning.n_positions).first;
    if (n_available(group, source, first_needed) < n_entries(shape) - n_there) return std::nullopt;
  }
  if (beginning.key.window != 0 && !take_window(beginning.key.window)) return std::nullopt;
  const std::optional<uint32_t> slot = store_.take();
  if (!slot) return std::nullopt;

  Sequence& sequence = store_[*slot];
  sequence.id = beginning.id;
  sequence.key = beginning.key;
  prefix_end_ = source.end;
  sequence.tokens.reserve(store_.log_stride());
  sequence.unread.reserve(store_.log_stride());  // so that nothing is allocated when it ends
  sequence.tokens.assign(beginning.tokens.begin(), beginning.tokens.end());
  sequence.n_prompt = beginning.n_prompt;
  sequence.pages.resize(groups_.size());
  // As many as a text can ever have: `take_unsent` hands out pointers into these lists.
  for (size_t group = 0; group < groups_.size(); ++group)
    sequence.pages[group].reserve(std::max(
        store_.page_table_stride(), groups_[group].of.shape.most_pages(store_.context(), n_rows_)));
  sequence.n_sent.assign(groups_.size(), 0);
  for (uint32_t group = 0; group < groups_.size(); ++group)
    if (is_of_window(sequence.key, group)) {
      const std::vector<uint32_t>& pages = find_window(sequence.key.window)->pages;
      sequence.pages[group].assign(pages.begin(), pages.end());
      for (const uint32_t page : pages) groups_[group].of.pages.share(page);
    }
  n_from_disk_ = n_on_disk > 0 ? n_on_disk - source.n_positions : 0;
  bool there_is_room = true;
  if (moved != nullptr) {
    for (uint32_t group = 0; group < groups_.size(); ++group)
      sequence.pages[group].assign(moved->saved.first_entries[group], kNoPage);
  } else {
    share(source, sequence);
    there_is_room = (n_on_disk == 0 || drop_part_of_page(sequence)) && own_what_it_writes(sequence);
  }
  if (n_on_disk > 0) {
    there_is_room = there_is_room && fill(sequence, *from_disk, n_on_disk);
    const bool is_whole = n_on_disk + 1 == beginning.tokens.size();
    prefix_end_ = is_whole             ? PrefixEnd::whole
                  : from_disk->goes_on ? PrefixEnd::differs
                                       : PrefixEnd::ends;
  }
  for (uint32_t group = 0; group < groups_.size(); ++group)
    there_is_room = there_is_room && extend(sequence, group, n_entries(groups_[group].of.shape));
  if (there_is_room && moved != nullptr) {
    write_positions(sequence, moved->saved, moved->n);
    sequence.n_done = moved->n;
    sequence.n_exact = moved->n_exact;
  }
  if (there_is_room) return slot;
  assert(false);  // n_available counted wrongly
  discard(*slot);
  return std::nullopt;
}

// Pages that are free or can be evicted, except those that the new sequence shares with `source` and needs.
uint32_t SequenceCache::n_available(uint32_t group, const Source& source, uint32_t first_needed) {
  survey(group);
  const GroupShape& shape = groups_[group].of.shape;
  const Entries shared = lent(shape, source.n_positions);
  for (uint32_t entry = std::max(shared.first, first_needed); entry < shared.end; ++entry)
    groups_[group].pages[source.sequence->pages[group][entry]].worth = Worth::needed;
  return groups_[group].of.pages.n_free() +
         static_cast<uint32_t>(std::ranges::count_if(groups_[group].pages, [](const auto& page) {
           return page.worth == Worth::between || page.worth == Worth::continued;
         }));
}

// Gives `with` every page of the source that it can use; the last one may be used only in part. Pages
// that no window sees any more are shared too: they make it possible to rewind `with`, or to continue it
// from an earlier place.
void SequenceCache::share(const Source& source, Sequence& with) {
  with.n_done = source.n_positions;
  for (uint32_t group = 0; group < groups_.size() && with.n_done > 0; ++group) {
    if (is_of_window(with.key, group)) continue;
    const GroupShape& shape = groups_[group].of.shape;
    if (shape.has_states()) {
      take_over_states(*source.sequence, with, group);
      continue;
    }
    const std::span<const uint32_t> pages = source.sequence->pages[group];
    for (const uint32_t page : pages.first(shape.needed(with.n_done, with.n_done).end)) {
      with.pages[group].push_back(page);
      if (page != kNoPage) groups_[group].of.pages.share(page);
    }
  }
  use(with);
  if (source.sequence != nullptr)
    for (const uint32_t place : source.sequence->parted)
      if (place <= source.n_positions) with.part(place);
  if (source.n_same > 0) with.part(source.n_same);
  if (!source.kept) return;
  if (source.sequence->tokens.size() == source.n_positions &&
      is_beginning(source.sequence->unread, std::span(with.tokens).subspan(source.n_positions)))
    drop(*source.kept);  // `with` has all of it, or will have
  else
    touch(*source.kept);
}

// The state after with.n_done positions, and the checkpoints before it.
void SequenceCache::take_over_states(const Sequence& from, Sequence& with, uint32_t group) {
  const std::vector<uint32_t>& pages = from.pages[group];
  const Held held = from.held(group);
  const auto& states = std::get<StateCache>(groups_[group].of.shape.kind);
  const uint32_t entry = *states.entry_of(held, with.n_done);
  const auto place = std::ranges::lower_bound(from.checkpoints, with.n_done);
  const auto n_before = place - from.checkpoints.begin();
  with.checkpoints.assign(from.checkpoints.begin(), place);
  with.n_run = entry == 0 ? held.n_run : from.checkpoints[entry - 1];
  with.pages[group].push_back(pages[entry]);
  with.pages[group].insert(with.pages[group].end(), pages.begin() + 1,
                           pages.begin() + 1 + n_before);
  for (const uint32_t page : with.pages[group])
    if (page != kNoPage) groups_[group].of.pages.share(page);
}

// Pages that the sequence is going to write must be its own.
bool SequenceCache::own_what_it_writes(Sequence& sequence) {
  const uint32_t n_done = sequence.n_done;
  for (uint32_t group = 0; group < groups_.size() && n_done > 0; ++group) {
    if (is_of_window(sequence.key, group)) continue;
    const GroupShape& shape = groups_[group].of.shape;
    const uint32_t n_copied = shape.has_states() ? kPagePositions : n_done % kPagePositions;
    for (uint32_t entry = lent(shape, n_done).end; entry < shape.needed(n_done, n_done).end;
         ++entry)
      if (!own(sequence, group, entry, n_copied)) return false;
  }
  return true;
}

bool SequenceCache::own(Sequence& sequence, uint32_t group, uint32_t entry, uint32_t n_positions) {
  PagePool& pool = groups_[group].of.pages;
  uint32_t& own = sequence.pages[group][entry];
  while (pool.references(own) > 1 && pool.n_free() == 0 && evict_page(group)) continue;
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

// --- sequences under way -----------------------------------------------------------------------

bool SequenceCache::extend(Sequence& sequence, uint32_t group, uint32_t n_entries) {
  std::vector<uint32_t>& pages = sequence.pages[group];
  while (pages.size() < n_entries) {
    uint32_t page = 0;
    if (!take_page(group, page)) return false;
    pages.push_back(page);
  }
  return true;
}

// A free page, or one that somebody can do without.
bool SequenceCache::take_page(uint32_t group, uint32_t& page) {
  PagePool& pool = groups_[group].of.pages;
  if (pool.n_free() == 0 && !evict_page(group)) return false;
  pool.take(std::span(&page, 1));
  groups_[group].pages[page].last_use = ++n_uses_;
  return true;
}

bool SequenceCache::extend(uint32_t slot, uint32_t n_positions) {
  Sequence& sequence = store_[slot];
  for (uint32_t group = 0; group < groups_.size(); ++group)
    if (!extend(sequence, group, groups_[group].of.shape.needed(sequence.n_done, n_positions).end))
      return false;
  return true;
}

uint32_t SequenceCache::covered(uint32_t slot) const {
  uint64_t least = store_.context();
  for (size_t group = 0; group < groups_.size(); ++group)
    least = std::min(least, groups_[group].of.shape.ask([&](const auto& kind) {
      return kind.covered(store_[slot].pages[group].size());
    }));
  return static_cast<uint32_t>(least);
}

void SequenceCache::done(uint32_t slot, uint32_t n) {
  Sequence& sequence = store_[slot];
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const GroupShape& shape = groups_[group].of.shape;
    const uint32_t end = shape.needed(n, n).first;
    for (uint32_t i = shape.needed(sequence.n_done, n).first; i < end; ++i)
      if (most_kept_ == 0)
        release(group, sequence.pages[group][i]);
      else if (sequence.pages[group][i] != kNoPage)
        groups_[group].pages[sequence.pages[group][i]].last_use = ++n_uses_;
  }
  sequence.n_done = sequence.n_run = n;
}

void SequenceCache::ran(uint32_t slot, uint32_t n) {
  Sequence& sequence = store_[slot];
  sequence.n_run = std::max(sequence.n_done, n);
}

bool SequenceCache::checkpoint(uint32_t slot) {
  Sequence& sequence = store_[slot];
  const auto has_states = [&](uint32_t group) { return groups_[group].of.shape.has_states(); };
  uint32_t n_most = 0;
  for (const Group& group : groups_)
    if (const auto* states = std::get_if<StateCache>(&group.of.shape.kind))
      n_most = states->n_checkpoints;
  std::vector<uint32_t>& places = sequence.checkpoints;
  if (n_most == 0 || std::ranges::find(places, sequence.n_done) != places.end()) return true;
  if (places.size() == n_most) {  // the first one goes
    places.erase(places.begin());
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      if (!has_states(group)) continue;
      release(group, sequence.pages[group][1]);
      sequence.pages[group].erase(sequence.pages[group].begin() + 1);
    }
  }
  const auto n_entries = static_cast<uint32_t>(2 + places.size());
  bool there_is_room = true;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    if (!has_states(group)) continue;
    there_is_room = there_is_room && extend(sequence, group, n_entries);
    if (there_is_room)
      cache_.copy_positions(group, sequence.pages[group][0], sequence.pages[group].back(),
                            kPagePositions);
  }
  if (there_is_room) {
    places.push_back(sequence.n_done);
    return true;
  }
  for (uint32_t group = 0; group < groups_.size(); ++group)
    if (has_states(group) && sequence.pages[group].size() == n_entries) {
      release(group, sequence.pages[group].back());
      sequence.pages[group].pop_back();
    }
  return false;
}

uint32_t SequenceCache::most_again() const {
  uint32_t most = kNone;
  for (const Group& group : groups_)
    if (const auto* states = std::get_if<StateCache>(&group.of.shape.kind))
      most = std::min(most, states->n_kept - 1);
  return most;
}

bool SequenceCache::has_unsent(uint32_t slot) const {
  const Sequence& sequence = store_[slot];
  for (size_t group = 0; group < groups_.size(); ++group)
    if (sequence.n_sent[group] < n_table_entries(groups_[group].of.shape, sequence, group))
      return true;
  return false;
}

std::span<const Update> SequenceCache::take_unsent(uint32_t slot) {
  updates_.clear();
  Sequence& sequence = store_[slot];
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    // Entries that the rows to come never read are not sent: the device may have anything there.
    const std::vector<uint32_t>& pages = sequence.pages[group];
    const uint32_t first_needed =
        groups_[group].of.shape.needed(sequence.n_done, sequence.n_done).first;
    const uint32_t n = n_table_entries(groups_[group].of.shape, sequence, group);
    const uint32_t first = std::max(first_needed, std::exchange(sequence.n_sent[group], n));
    if (first < n)
      updates_.push_back({store_.page_table(group, slot, first),
                          std::as_bytes(std::span(pages).subspan(first, n - first))});
  }
  return updates_;
}

// --- sequences that ended ----------------------------------------------------------------------

// Cuts a sequence back to `n_tokens`, or further, to where every group can continue it: tokens that are
// in no page, or whose window has lost a page, are forgotten.
void SequenceCache::cut(Sequence& sequence, uint32_t n_tokens) {
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
    for (; pages.size() > n_entries; pages.pop_back()) release(group, pages.back());
  }
}

// The entry that has the state after n positions becomes the current one; later checkpoints are removed
// from the list.
void SequenceCache::rewind_states(Sequence& sequence, uint32_t n) {
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

void SequenceCache::end(uint32_t slot, uint32_t n_kept) {
  Sequence sequence = store_.release(slot);
  leave_window(sequence);
  if (sequence.key.window != 0) n_kept = std::min(n_kept, n_shared(sequence));
  finish(sequence, most_kept_ > 0 ? n_kept : 0);
  keep(std::move(sequence));
}

void SequenceCache::set_aside(uint32_t slot) {
  Sequence sequence = store_.release(slot);
  leave_window(sequence);
  cut(sequence, most_kept_ > 0 ? kNone : 0);
  keep(std::move(sequence));
}

// Releases the pages of generated tokens, which no other text can use (see n_alike), and remembers the
// tokens as `unread`.
void SequenceCache::finish(Sequence& sequence, uint32_t n_kept) {
  std::vector<uint32_t>& tokens = sequence.tokens;
  std::vector<uint32_t>& unread = sequence.unread;
  const size_t n_text =
      std::min({tokens.size() + unread.size(), size_t{n_kept}, size_t{store_.context()}});
  const uint32_t n = reusable(sequence, std::min(n_kept, n_shared(sequence)));
  unread.insert(unread.begin(), tokens.begin() + n, tokens.end());
  unread.resize(n_text - std::min<size_t>(n, n_text));
  // Nobody reads it without what was heard, or seen.
  if (sequence.key.window != 0 || has_images(sequence)) unread.clear();
  cut(sequence, n);
}

void SequenceCache::discard(uint32_t slot) {
  Sequence sequence = store_.release(slot);
  leave_window(sequence);
  cut(sequence, 0);
}

void SequenceCache::keep(Sequence&& sequence) {
  if (sequence.tokens.empty()) return;
  // Texts with images are not stored on the disk: each process numbers images anew, and so the same number would be
  // another image to the next one.
  if (has_images(sequence)) sequence.is_stored = true;
  use(sequence);
  // Whether all that is left of `part` is in `whole`, too.
  const auto has_all_of = [&](const Sequence& whole, const Sequence& part) {
    const uint32_t n = common_prefix(shared_tokens(whole), shared_tokens(part));
    return n == part.tokens.size() && part.key == whole.key && reusable(whole, n) == n &&
           is_beginning(part.unread, shared_tokens(whole).subspan(n), whole.unread);
  };
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (has_all_of(kept_[i], sequence)) {
      cut(sequence, 0);
      return touch(i);
    }
    if (has_all_of(sequence, kept_[i])) drop(i--);
  }
  if (kept_.size() == most_kept_) drop(0);
  kept_.push_back(std::move(sequence));
}

void SequenceCache::shorten(uint64_t id, uint32_t n_kept) {
  const auto found = std::ranges::find(kept_, id, &Sequence::id);
  if (found == kept_.end()) return;
  finish(*found, n_kept);
  if (found->tokens.empty()) kept_.erase(found);
}

bool SequenceCache::has_unread() const {
  return std::ranges::any_of(kept_, [](const Sequence& each) { return !each.unread.empty(); });
}

std::optional<Unread> SequenceCache::take_unread() {
  for (Sequence& sequence : std::views::reverse(kept_)) {
    if (sequence.unread.empty()) continue;
    Unread unread{sequence.id, sequence.key, sequence.tokens};
    unread.tokens.insert(unread.tokens.end(), sequence.unread.begin(), sequence.unread.end());
    sequence.unread.clear();
    return unread;
  }
  return std::nullopt;
}

void SequenceCache::drop(size_t kept_index) {
  cut(kept_[kept_index], 0);
  kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(kept_index));
}

void SequenceCache::touch(size_t kept_index) {
  use(kept_[kept_index]);
  std::rotate(kept_.begin() + static_cast<ptrdiff_t>(kept_index),
              kept_.begin() + static_cast<ptrdiff_t>(kept_index) + 1, kept_.end());
}

}  // namespace akunu
