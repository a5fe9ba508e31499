// Positions that leave the cache as bytes, and come back. saved_positions.h says how they lie.
//
// 1. What it does. `read_positions` copies what a text has, `restore` makes a kept sequence of it, as
//    if a text had just ended that read these tokens as its prompt.
// 2. What bounds it. Copies between host and device, of a few kilobytes each where a page is not full.
// 3. What it must not do. Take pages that somebody needs: what a text begins like is shared, not copied, and
//    where too few pages are spare, less is restored. The rest is read again when somebody asks for it.
#include "cache/saved_positions.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "cache/sequence_cache.h"

namespace akunu {
namespace {

// Calls `run(memory, n_bytes)` for every stretch of a page that lies in one piece, in their order.
template <class Run>
void for_each_stretch(const KvCache& cache, uint32_t group, uint32_t page, uint32_t n_positions,
                      const Run& run) {
  const GroupShape& of_group = cache.groups()[group].shape;
  const std::vector<LayerCache>& layers = cache.layers_of(of_group);
  for (const LayerShape& shape : of_group.layers) {
    const LayerCache& layer = layers[shape.layer];
    const bool is_whole = n_positions == shape.n_positions;
    const uint32_t n_stretches = is_whole ? 1 : shape.n_heads;
    for (const bool is_value : {false, true}) {
      const Binding& memory = is_value ? layer.values : layer.keys;
      if (!memory) continue;  // values that are part of the keys
      const uint64_t n_bytes =
          uint64_t{is_whole ? shape.n_heads : 1} * n_positions * shape.position_bytes(is_value);
      const uint64_t of_page = shape.pool_page_bytes(is_value);
      for (uint32_t i = 0; i < n_stretches; ++i)
        run(Binding{memory.buffer, memory.offset + page * of_page + i * (of_page / n_stretches)},
            n_bytes);
    }
  }
}

uint32_t size_of(const std::vector<uint32_t>& list) { return static_cast<uint32_t>(list.size()); }

std::span<std::byte> take(std::span<std::byte>& from, uint64_t n) {
  return std::exchange(from, from.subspan(n)).first(n);
}
std::span<const std::byte> take(std::span<const std::byte>& from, uint64_t n) {
  return std::exchange(from, from.subspan(n)).first(n);
}

}  // namespace

// As the kernels have it, the state after p positions, and the inputs of position p, are at p modulo the number of
// places.
void clear_unset_states(const GroupShape& shape, uint32_t n, std::span<std::byte> page) {
  const auto clear = [](std::span<std::byte> places, uint32_t n_places, auto&& is_set) {
    const uint64_t n_bytes = places.size() / n_places;
    for (uint32_t i = 0; i < n_places; ++i)
      if (!is_set(i)) std::ranges::fill(places.subspan(i * n_bytes, n_bytes), std::byte{0});
  };
  const uint32_t n_states = std::get<StateCache>(shape.kind).n_kept;
  for (const LayerShape& layer : shape.layers) {
    clear(take(page, layer.pool_page_bytes(false)), n_states,
          [&](uint32_t i) { return n >= n_states || (i > 0 && i <= n); });
    if (const std::span<std::byte> inputs = take(page, layer.pool_page_bytes(true));
        !inputs.empty())
      clear(inputs, layer.n_kept_inputs, [&](uint32_t i) { return i < n; });
  }
}

uint64_t saved_page_bytes(const GroupShape& group, uint32_t n_positions) {
  if (group.has_states()) n_positions = 1;
  uint64_t bytes = 0;
  for (const LayerShape& layer : group.layers)
    bytes += uint64_t{layer.n_heads} * n_positions * (layer.key_bytes + layer.value_bytes);
  return bytes;
}

uint64_t saved_bytes(std::span<const GroupShape> groups, std::span<const uint32_t> first_entries,
                     uint32_t n) {
  uint64_t bytes = 0;
  for (size_t group = 0; group < groups.size(); ++group)
    for (uint32_t entry = first_entries[group]; entry < saved_entries(groups[group], n); ++entry)
      bytes += saved_page_bytes(groups[group], saved_of(groups[group], entry, n));
  return bytes;
}

std::vector<uint32_t> first_entries_to_save(std::span<const GroupShape> groups, uint32_t n) {
  std::vector<uint32_t> entries;
  const uint32_t back = n - std::min(n, kPagePositions);
  for (const GroupShape& group : groups) entries.push_back(group.needed(back, n).first);
  return entries;
}

void KvCache::read_positions(uint32_t group, uint32_t page, uint32_t n_positions,
                             std::span<std::byte> into) const {
  for_each_stretch(*this, group, page, n_positions, [&](const Binding& memory, uint64_t n_bytes) {
    device_->read(memory, take(into, n_bytes));
  });
}

void KvCache::write_positions(uint32_t group, uint32_t page, uint32_t n_positions,
                              std::span<const std::byte> from) {
  for_each_stretch(*this, group, page, n_positions, [&](const Binding& memory, uint64_t n_bytes) {
    device_->write(memory, take(from, n_bytes));
  });
}

void SequenceCache::read_positions(uint32_t slot, SavedPositions& saved) const {
  const Sequence& sequence = store_[slot];
  uint64_t n_bytes = 0;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const std::vector<uint32_t>& pages = sequence.pages[group];
    const GroupShape& shape = groups_[group].of.shape;
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

SavedPositions SequenceCache::room_for_positions(uint32_t slot) const {
  const uint32_t n = store_[slot].n_done;
  std::vector<GroupShape> groups;
  SavedPositions room;
  for (const Group& group : groups_) {
    groups.push_back(group.of.shape);
    room.first_entries.push_back(group.of.shape.needed(n, n).first);
  }
  room.bytes.resize(saved_bytes(groups, room.first_entries, n));
  return room;
}

// Into the pages that the sequence has for these n positions. Those that it shares have the same bits.
void SequenceCache::write_positions(const Sequence& sequence, const SavedPositions& saved,
                                    uint32_t n) {
  std::span<const std::byte> bytes = saved.bytes;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const GroupShape& shape = groups_[group].of.shape;
    for (uint32_t entry = saved.first_entries[group]; entry < saved_entries(shape, n); ++entry) {
      const std::vector<uint32_t>& pages = sequence.pages[group];
      const uint32_t n_positions = saved_of(shape, entry, n);
      const std::span<const std::byte> of_page = take(bytes, saved_page_bytes(shape, n_positions));
      if (entry < pages.size() && groups_[group].of.pages.references(pages[entry]) == 1)
        cache_.write_positions(group, pages[entry], n_positions, of_page);
    }
  }
  assert(bytes.empty());
}

// Entries of the saved pages of a group that the source has, too.
Entries SequenceCache::shared_with(const Source& source, uint32_t group,
                                   const SavedPositions& saved) const {
  const Entries lent =
      groups_[group].of.shape.ask([&](const auto& kind) { return kind.lent(source.n_positions); });
  const uint32_t first = std::max(lent.first, saved.first_entries[group]);
  return {first, std::max(first, lent.end)};
}

// Positions, of n that were saved, that can come back: there is room for their pages, and a text can go
// on behind them.
uint32_t SequenceCache::restorable(const Source& source, const SavedPositions& saved, uint32_t n) {
  uint32_t n_entries = pages_for(n);
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    const Entries shared = shared_with(source, group, saved);
    const uint32_t first = saved.first_entries[group];
    const uint32_t n_own = n_available(group, source);
    if (groups_[group].of.shape.has_states()) {
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
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      const GroupShape& shape = groups_[group].of.shape;
      // Any page but kNoPage.
      std::vector<uint32_t> pages(shape.has_states() ? 1 : n_entries, 0);
      std::fill_n(pages.begin(), std::min(size_of(pages), saved.first_entries[group]), kNoPage);
      const Held held{pages, n, {}, n};
      most = shape.ask([&](const auto& kind) { return kind.reusable(held, most); });
    }
  }
  return most;
}

uint32_t SequenceCache::restore(uint64_t id, const PrefixKey& key, std::span<const uint32_t> tokens,
                                const SavedPositions& saved) {
  if (most_kept_ == 0) return 0;
  const auto n = static_cast<uint32_t>(tokens.size());
  Sequence* most_alike = nullptr;
  const Source source =
      longest({.id = id, .key = key, .tokens = tokens, .n_prompt = n}, most_alike);
  // Before anything is evicted: nobody's prefix goes for what is of no use.
  const uint32_t n_restored = restorable(source, saved, n);
  if (n_restored <= source.n_positions) return source.n_positions;
  Sequence sequence;
  sequence.id = id;
  sequence.key = key;
  sequence.tokens.assign(tokens.begin(), tokens.begin() + n_restored);
  sequence.n_prompt = n_restored;
  sequence.pages.resize(groups_.size());
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    sequence.pages[group].assign(saved_entries(groups_[group].of.shape, n_restored), kNoPage);
    const Entries shared = shared_with(source, group, saved);
    for (uint32_t entry = shared.first; entry < shared.end; ++entry) {
      sequence.pages[group][entry] = source.sequence->pages[group][entry];
      groups_[group].of.pages.share(sequence.pages[group][entry]);
    }
  }
  // From here on the source may go.
  restored_ = &sequence;
  bool there_is_room = true;
  for (uint32_t group = 0; group < groups_.size(); ++group)
    for (uint32_t entry = saved.first_entries[group]; entry < size_of(sequence.pages[group]);
         ++entry)
      if (uint32_t& page = sequence.pages[group][entry]; page == kNoPage)
        there_is_room = there_is_room && take_page(group, page);
  restored_ = nullptr;
  if (!there_is_room) {
    assert(false);  // n_available counted wrongly
    cut(sequence, 0);
    return 0;
  }
  write_positions(sequence, saved, n);
  sequence.n_done = n_restored;
  sequence.n_run = n;  // whose state was saved
  keep(std::move(sequence));
  return n_restored;
}

}  // namespace akunu
