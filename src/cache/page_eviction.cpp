// What goes when a sequence needs a page and none is free.
//
// 1. What it does. `evict` finds out what each page of a group is worth to the sequences that have it (`survey`), and
//    takes the one that is worth least from all of them (`give_up`). What a running text needs never goes.
// 2. What bounds it. The host between two steps: it looks at all pages of a group.
// 3. Where to change it. What goes first: `worth_of`, and the rank in `evict`.
#include <algorithm>
#include <tuple>
#include <utility>

#include "cache/pages.h"

namespace akunu {
namespace {

// The next request of a conversation often diverges some tokens before the end of the cached text, because
// chat templates render the last reply differently once others follow. So pages up to this many positions
// before that end are kept as long as the end itself.
constexpr uint32_t kRewind = kPagePositions;

}  // namespace

Pages::Worth Pages::worth_of(const Sequence& sequence, bool is_kept, uint32_t group,
                             uint32_t entry) const {
  const GroupShape& shape = groups_[group].of.shape;
  if (!is_kept && !shape.ask([&](const auto& kind) { return kind.may_go(sequence.n_done, entry); }))
    return Worth::needed;
  if (shape.has_states()) return Worth::continued;  // checkpoints are made to continue from
  const auto is_near = [&](uint32_t place) {
    return place <= sequence.n_done &&
           shape.needed(place - std::min(place, kRewind), place).contains(entry);
  };
  if (is_near(sequence.n_done) || is_near(sequence.n_prompt) ||
      std::ranges::any_of(sequence.parted, is_near))
    return Worth::continued;
  return Worth::between;
}

// Finds out what each page of a group is worth: the most that it is worth to any sequence that has it.
void Pages::survey(uint32_t group) {
  for (PageState& page : groups_[group].pages) page.worth = Worth::none;
  const auto look_at = [&](const Sequence& sequence, bool is_kept) {
    for (uint32_t entry = 0; entry < sequence.pages[group].size(); ++entry) {
      if (sequence.pages[group][entry] == kNoPage) continue;
      PageState& page = groups_[group].pages[sequence.pages[group][entry]];
      page.worth = std::max(page.worth, worth_of(sequence, is_kept, group, entry));
      page.entry = entry;
    }
  };
  for (const Sequence& sequence : texts_.kept) look_at(sequence, true);
  texts_.each_running([&](const Sequence& sequence) { look_at(sequence, false); });
  if (texts_.restored == nullptr) return;
  for (const uint32_t page : texts_.restored->pages[group])
    if (page != kNoPage) groups_[group].pages[page].worth = Worth::needed;
}

uint32_t Pages::available(uint32_t group, std::span<const uint32_t> needed) {
  survey(group);
  for (const uint32_t page : needed) groups_[group].pages[page].worth = Worth::needed;
  return groups_[group].of.pages.n_free() +
         static_cast<uint32_t>(std::ranges::count_if(groups_[group].pages, [](const auto& page) {
           return page.worth == Worth::between || page.worth == Worth::continued;
         }));
}

PageCounts Pages::count(uint32_t group) {
  const uint64_t count = ++n_counts_;
  PageCounts counts;
  texts_.each_running([&](const Sequence& sequence) {
    const std::vector<uint32_t>& pages = sequence.pages[group];
    for (uint32_t entry = 0; entry < pages.size(); ++entry) {
      if (pages[entry] == kNoPage || worth_of(sequence, false, group, entry) != Worth::needed)
        continue;
      PageState& page = groups_[group].pages[pages[entry]];
      if (std::exchange(page.last_count, count) != count) ++counts.needed;
    }
  });
  const PagePool& pool = groups_[group].of.pages;
  counts.spare = pool.n_pages() - pool.n_free() - counts.needed;
  return counts;
}

// Frees the page that is worth least; false where running sequences need all of them.
bool Pages::evict(uint32_t group) {
  survey(group);
  const std::vector<PageState>& pages = groups_[group].pages;
  const bool from_end =
      groups_[group].of.shape.ask([](const auto& kind) { return kind.kGoesFromEnd; });
  const auto rank = [&](const PageState& page) {
    return std::tuple(page.worth, page.last_use, from_end ? ~page.entry : page.entry);
  };
  const PageState* least = nullptr;
  for (const PageState& page : pages)
    if (page.worth == Worth::between || page.worth == Worth::continued)
      if (least == nullptr || rank(page) < rank(*least)) least = &page;
  if (least == nullptr) return false;
  give_up(group, static_cast<uint32_t>(least - pages.data()), nullptr);
  return true;
}

// Takes a page from every sequence that can do without it, except from `except`. A kept sequence is cut
// back to where it can still be continued without the page.
void Pages::give_up(uint32_t group, uint32_t page, const Sequence* except) {
  const auto give_up_of = [&](Sequence& sequence, bool is_kept) {
    std::vector<uint32_t>& pages = sequence.pages[group];
    const auto found = std::ranges::find(pages, page);
    if (found == pages.end()) return;
    const auto entry = static_cast<uint32_t>(found - pages.begin());
    if (worth_of(sequence, is_kept, group, entry) == Worth::needed) return;
    give_back(group, *found);
    if (!is_kept) return;
    const uint32_t n_done = sequence.n_done;
    cut(sequence, n_done);
    if (sequence.n_done < n_done) sequence.unread.clear();  // there would be no room to read them
  };
  texts_.each_running([&](Sequence& sequence) {
    if (&sequence != except) give_up_of(sequence, false);
  });
  for (Sequence& sequence : texts_.kept) give_up_of(sequence, true);
  std::erase_if(texts_.kept, [](const Sequence& sequence) { return sequence.tokens.empty(); });
}

}  // namespace akunu
