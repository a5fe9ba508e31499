// SequenceCache's windows of speech: who has their pages, and which of them goes first.
#include <algorithm>
#include <utility>

#include "cache/sequence_cache.h"

namespace akunu {

EncodedWindow* SequenceCache::find_window(uint64_t id) {
  const auto found = std::ranges::find(windows_, id, &EncodedWindow::id);
  return found == windows_.end() ? nullptr : &*found;
}

// Sees to pages for a window; false where texts under way need too many of others.
bool SequenceCache::take_window(uint64_t id) {
  if (EncodedWindow* const window = find_window(id)) {
    window->last_use = ++n_uses_;
    return true;
  }
  const auto group =
      std::ranges::find_if(groups_, [](const Group& each) { return each.of.shape.is_cross(); });
  if (group == groups_.end()) return false;
  EncodedWindow window{.id = id, .pages = {}, .last_use = ++n_uses_};
  window.pages.resize(group->of.shape.needed(0, 0).end);
  while (!group->of.pages.take(window.pages))
    if (!forget_one_window()) return false;
  windows_.push_back(std::move(window));
  return true;
}

// Of the windows that no sequence reads, the one that was used longest ago.
bool SequenceCache::forget_one_window() {
  for (Group& group : groups_) {
    if (!group.of.shape.is_cross()) continue;
    PagePool& pool = group.of.pages;
    auto oldest = windows_.end();
    for (auto window = windows_.begin(); window != windows_.end(); ++window)
      if (pool.references(window->pages[0]) == 1 &&
          (oldest == windows_.end() || window->last_use < oldest->last_use))
        oldest = window;
    if (oldest == windows_.end()) return false;
    for (const uint32_t page : oldest->pages) pool.release(page);
    windows_.erase(oldest);
    return true;
  }
  return false;
}

bool SequenceCache::is_to_fill(uint64_t window) const {
  const auto found = std::ranges::find(windows_, window, &EncodedWindow::id);
  return found != windows_.end() && !found->is_filled;
}

void SequenceCache::filled(uint64_t window) {
  if (EncodedWindow* const found = find_window(window)) found->is_filled = true;
}

// Of a text that ended, only what its own tokens made is kept; nor is what was generated read again.
void SequenceCache::leave_window(Sequence& sequence) {
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    if (!is_of_window(sequence.key, group)) continue;
    for (uint32_t& page : sequence.pages[group]) release(group, page);
    sequence.pages[group].clear();
  }
}

void SequenceCache::forget_windows() {
  while (forget_one_window()) continue;
}

}  // namespace akunu
