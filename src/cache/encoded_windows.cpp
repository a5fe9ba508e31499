#include "cache/encoded_windows.h"

#include <algorithm>
#include <utility>

namespace akunu {

EncodedWindows::Window* EncodedWindows::find(uint64_t id) {
  const auto found = std::ranges::find(windows_, id, &Window::id);
  return found == windows_.end() ? nullptr : &*found;
}

bool EncodedWindows::take(uint64_t id) {
  if (Window* const window = find(id)) {
    window->last_use = ++n_uses_;
    return true;
  }
  const auto group = std::ranges::find_if(
      cache_.groups(), [](const CacheGroup& each) { return each.shape.is_cross(); });
  if (group == cache_.groups().end()) return false;
  Window window{.id = id, .last_use = ++n_uses_};
  window.pages.resize(group->shape.needed(0, 0).end);
  while (!group->pages.take(window.pages))
    if (!forget_one()) return false;
  windows_.push_back(std::move(window));
  return true;
}

void EncodedWindows::lend(Sequence& sequence) {
  for (uint32_t group = 0; group < cache_.groups().size(); ++group) {
    CacheGroup& of = cache_.groups()[group];
    if (!is_of_window(sequence, of.shape)) continue;
    const std::vector<uint32_t>& pages = find(sequence.key.window)->pages;
    sequence.pages[group].assign(pages.begin(), pages.end());
    for (const uint32_t page : pages) of.pages.share(page);
  }
}

void EncodedWindows::leave(Sequence& sequence) {
  for (uint32_t group = 0; group < cache_.groups().size(); ++group) {
    CacheGroup& of = cache_.groups()[group];
    if (!is_of_window(sequence, of.shape)) continue;
    for (const uint32_t page : sequence.pages[group]) of.pages.release(page);
    sequence.pages[group].clear();
  }
}

bool EncodedWindows::is_to_fill(uint64_t id) const {
  const auto found = std::ranges::find(windows_, id, &Window::id);
  return found != windows_.end() && !found->is_filled;
}

void EncodedWindows::filled(uint64_t id) {
  if (Window* const found = find(id)) found->is_filled = true;
}

void EncodedWindows::forget() {
  while (forget_one()) continue;
}

// Forgets the least recently used window that no sequence reads.
bool EncodedWindows::forget_one() {
  for (CacheGroup& group : cache_.groups()) {
    if (!group.shape.is_cross()) continue;
    PagePool& pool = group.pages;
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

}  // namespace akunu
