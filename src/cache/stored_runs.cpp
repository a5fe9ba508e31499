#include "cache/stored_runs.h"

#include <algorithm>
#include <optional>

#include "cache/saved_positions.h"

namespace akunu {
namespace {

// The entry of the page whose newest state is the one after `place` positions. The page has the state one position
// earlier, too.
std::optional<uint32_t> entry_that_ends_at(const Held& held, uint32_t place) {
  const auto is_there = [&](size_t entry) {
    return entry < held.pages.size() && held.pages[entry] != kNoPage;
  };
  const auto at = std::ranges::find(held.checkpoints, place);
  const auto entry = static_cast<uint32_t>(1 + (at - held.checkpoints.begin()));
  if (at != held.checkpoints.end() && is_there(entry)) return entry;
  if (held.n_run == place && is_there(0)) return 0;
  return std::nullopt;
}

// Appends room for a page of another group to the copied bytes.
std::span<std::byte> add_page(RunPages& copied, uint32_t group, const GroupShape& shape) {
  const uint64_t n_bytes = saved_page_bytes(shape, copied.n_positions);
  copied.groups |= uint64_t{1} << group;
  copied.bytes.resize(copied.bytes.size() + n_bytes);
  return std::span(copied.bytes).last(n_bytes);
}

}  // namespace

const Sequence* StoredRuns::next() const {
  for (const Sequence& sequence : texts_.kept)
    if (!sequence.is_stored) return &sequence;
  return nullptr;
}

void StoredRuns::set_stored(uint64_t id) {
  for (Sequence& sequence : texts_.kept)
    if (sequence.id == id) sequence.is_stored = true;
}

// The last page of a text whose reply was not read is stored now. (With states it was stored before.) The disk evicts what was
// written longest ago, so writing an older text can evict a newer one: newer texts are checked again.
void StoredRuns::forget_unread() {
  bool keeps_states = false;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group)
    keeps_states |= pages_.shape(group).has_states();
  bool is_behind = false;
  for (Sequence& sequence : texts_.kept) {
    is_behind |= !sequence.unread.empty() && !keeps_states;
    if (is_behind && !has_images(sequence)) sequence.is_stored = false;
    sequence.unread.clear();
  }
}

std::vector<uint32_t> StoredRuns::places_of_states(const Sequence& sequence, uint32_t n) const {
  std::vector<uint32_t> places = sequence.checkpoints;
  places.push_back(sequence.n_done);
  std::erase_if(places, [&](uint32_t place) {
    bool are_there = false;
    for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
      if (!pages_.shape(group).has_states()) continue;
      are_there = entry_that_ends_at(sequence.held(group), place).has_value();
      if (!are_there) break;
    }
    return place > n || !are_there;
  });
  return places;
}

RunPages StoredRuns::copy(const Sequence& sequence, const MissingRun& missing) const {
  return missing.run.is_state ? copy_states(sequence, missing.end())
                              : copy_page(sequence, missing.entry, missing.run.n_positions());
}

RunPages StoredRuns::copy_states(const Sequence& sequence, uint32_t place) const {
  RunPages copied;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    const GroupShape& shape = pages_.shape(group);
    if (!shape.has_states()) continue;
    const uint32_t page = sequence.pages[group][*entry_that_ends_at(sequence.held(group), place)];
    const std::span<std::byte> into = add_page(copied, group, shape);
    cache_.read_positions(group, page, 1, into);
    clear_unset_states(shape, place, into);
  }
  return copied;
}

RunPages StoredRuns::copy_page(const Sequence& sequence, uint32_t entry,
                               uint32_t n_positions) const {
  RunPages copied{.n_positions = n_positions, .groups = 0, .bytes = {}};
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    const std::vector<uint32_t>& pages = sequence.pages[group];
    if (pages_.shape(group).has_states()) continue;
    if (entry >= pages.size() || pages[entry] == kNoPage) continue;
    cache_.read_positions(group, pages[entry], n_positions,
                          add_page(copied, group, pages_.shape(group)));
  }
  return copied;
}

uint32_t StoredRuns::usable(const RunsOnDisk& from_disk, const Beginning& beginning,
                            uint32_t n_positions) const {
  const uint32_t n = std::min({from_disk.n_positions, beginning.n_prompt, beginning.most_reused,
                               static_cast<uint32_t>(beginning.tokens.size()) - 1});
  const uint32_t first = from_disk.first_entry;
  // Since it was read the cache may have lost what is before it.
  if (n <= n_positions || n_positions / kPagePositions < first) return 0;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    if (const auto* states = std::get_if<StateCache>(&pages_.shape(group).kind)) {
      if (!from_disk.state || n > from_disk.state->place ||
          n + states->n_kept <= from_disk.state->place)
        return 0;
      continue;
    }
    const Entries needed = pages_.shape(group).needed(n, n);
    for (uint32_t entry = std::max(n_positions / kPagePositions, needed.first);
         entry < pages_for(n); ++entry)
      if (entry - first >= from_disk.pages.size() ||
          (from_disk.pages[entry - first].groups >> group & 1) == 0)
        return 0;
  }
  return n;
}

// Releases the last page of what a text took over from the cache if it is not full: the disk has all of it. Its current
// state is replaced by the disk's, in a new page; checkpoints stay. False where no page is free.
bool StoredRuns::drop_part_of_page(Sequence& sequence) {
  sequence.n_done -= sequence.n_done % kPagePositions;
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    std::vector<uint32_t>& pages = sequence.pages[group];
    if (pages_.shape(group).has_states()) {
      if (pages.empty()) continue;
      pages_.give_back(group, pages[0]);
      if (!pages_.take(group, pages[0])) return false;
      continue;
    }
    for (; pages.size() > sequence.n_done / kPagePositions; pages.pop_back())
      pages_.give_back(group, pages.back());
  }
  return true;
}

// The bytes of one group within pages that were read.
std::span<const std::byte> StoredRuns::bytes_of(const RunPages& pages, uint32_t group) const {
  const auto n_bytes = [&](uint32_t of) {
    return saved_page_bytes(pages_.shape(of), pages.n_positions);
  };
  uint64_t n_before = 0;
  for (uint32_t other = 0; other < group; ++other)
    if (pages.groups >> other & 1) n_before += n_bytes(other);
  return std::span(pages.bytes).subspan(n_before, n_bytes(group));
}

bool StoredRuns::fill(Sequence& sequence, const RunsOnDisk& from_disk, uint32_t n_positions) {
  if (!drop_part_of_page(sequence)) return false;
  const uint32_t first_new = sequence.n_done / kPagePositions;
  sequence.n_done = n_positions;  // so that pages outside its window can be evicted for later ones
  for (uint32_t group = 0; group < pages_.n_groups(); ++group) {
    std::vector<uint32_t>& pages = sequence.pages[group];
    const GroupShape& shape = pages_.shape(group);
    if (shape.has_states()) {
      if (!pages_.extend(sequence, group, 1)) return false;
      cache_.write_positions(group, pages[0], 1, bytes_of(from_disk.state->pages, group));
      sequence.n_run = from_disk.state->place;
      continue;
    }
    const uint32_t first = std::max(first_new, shape.needed(n_positions, n_positions).first);
    while (pages.size() < first) pages.push_back(kNoPage);  // no row that comes sees these
    if (!pages_.extend(sequence, group, pages_for(n_positions))) return false;
    for (uint32_t entry = first; entry < pages_for(n_positions); ++entry) {
      const RunPages& from = from_disk.pages[entry - from_disk.first_entry];
      cache_.write_positions(group, pages[entry], from.n_positions, bytes_of(from, group));
    }
  }
  return true;
}

}  // namespace akunu
