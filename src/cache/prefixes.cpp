#include "cache/prefixes.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace akunu {
namespace {

// Whether `first` with `second` after it begins with `tokens`.
bool is_beginning(std::span<const uint32_t> tokens, std::span<const uint32_t> first,
                  std::span<const uint32_t> second = {}) {
  const uint32_t n = common_prefix(tokens, first);
  return n == first.size() ? common_prefix(tokens.subspan(n), second) == tokens.size() - n
                           : n == tokens.size();
}

std::span<const uint32_t> shared_tokens(const Sequence& sequence) {
  return std::span(sequence.tokens).first(n_shared(sequence));
}

}  // namespace

std::span<const uint32_t> Prefix::lent_pages(const GroupShape& shape, uint32_t group,
                                             uint32_t first) const {
  const Entries entries = lent(shape, n_positions);
  first = std::max(entries.first, first);
  if (first >= entries.end) return {};
  return std::span(sequence->pages[group]).subspan(first, entries.end - first);
}

Prefixes::Prefixes(CachedTexts& texts, Pages& pages, bool looks_ahead)
    : texts_(texts), pages_(pages), looks_ahead_(looks_ahead) {
  texts_.kept.reserve(texts_.most_kept);
}

// The last page may be used only in part. Pages that no window sees any more are shared too: they make it
// possible to rewind `with`, or to continue it from an earlier place.
void Prefixes::lend(const Prefix& prefix, Sequence& with) {
  with.n_done = prefix.n_positions;
  for (uint32_t group = 0; group < pages_.n_groups() && with.n_done > 0; ++group) {
    const GroupShape& shape = pages_.shape(group);
    if (is_of_window(with, shape)) continue;
    if (shape.has_states()) {
      lend_states(*prefix.sequence, with, group);
      continue;
    }
    const std::span<const uint32_t> pages = prefix.sequence->pages[group];
    for (const uint32_t page : pages.first(shape.needed(with.n_done, with.n_done).end)) {
      with.pages[group].push_back(page);
      if (page != kNoPage) pages_.share(group, page);
    }
  }
  pages_.use(with);
  if (prefix.sequence != nullptr)
    for (const uint32_t place : prefix.sequence->parted)
      if (place <= prefix.n_positions) with.part(place);
  if (prefix.n_same > 0) with.part(prefix.n_same);
  if (!prefix.kept) return;
  if (prefix.sequence->tokens.size() == prefix.n_positions &&
      is_beginning(prefix.sequence->unread, std::span(with.tokens).subspan(prefix.n_positions)))
    drop(*prefix.kept);  // `with` has all of it, or will have
  else
    touch(*prefix.kept);
}

// The state after with.n_done positions, and the checkpoints before it.
void Prefixes::lend_states(const Sequence& from, Sequence& with, uint32_t group) {
  const std::vector<uint32_t>& pages = from.pages[group];
  const Held held = from.held(group);
  const auto& states = std::get<StateCache>(pages_.shape(group).kind);
  const uint32_t entry = *states.entry_of(held, with.n_done);
  const auto place = std::ranges::lower_bound(from.checkpoints, with.n_done);
  const auto n_before = place - from.checkpoints.begin();
  with.checkpoints.assign(from.checkpoints.begin(), place);
  with.n_run = entry == 0 ? held.n_run : from.checkpoints[entry - 1];
  with.pages[group].push_back(pages[entry]);
  with.pages[group].insert(with.pages[group].end(), pages.begin() + 1,
                           pages.begin() + 1 + n_before);
  for (const uint32_t page : with.pages[group])
    if (page != kNoPage) pages_.share(group, page);
}

void Prefixes::keep(Sequence&& sequence, uint32_t n_kept) {
  if (sequence.key.window != 0) n_kept = std::min(n_kept, n_shared(sequence));
  finish(sequence, texts_.most_kept > 0 ? n_kept : 0);
  add(std::move(sequence));
}

// Releases the pages of generated tokens, which no other text can use (see n_alike), and remembers the
// tokens as `unread`.
void Prefixes::finish(Sequence& sequence, uint32_t n_kept) {
  std::vector<uint32_t>& tokens = sequence.tokens;
  std::vector<uint32_t>& unread = sequence.unread;
  const size_t n_text =
      std::min({tokens.size() + unread.size(), size_t{n_kept}, size_t{texts_.running.context()}});
  const uint32_t n = pages_.reusable(sequence, std::min(n_kept, n_shared(sequence)));
  unread.insert(unread.begin(), tokens.begin() + n, tokens.end());
  unread.resize(n_text - std::min<size_t>(n, n_text));
  // It is not read again without its window or its images.
  if (sequence.key.window != 0 || has_images(sequence)) unread.clear();
  pages_.cut(sequence, n);
}

void Prefixes::add(Sequence&& sequence) {
  if (sequence.tokens.empty()) return;
  // Texts with images are not stored on the disk: each process numbers images anew, and so the same number would be
  // another image to the next one.
  if (has_images(sequence)) sequence.is_stored = true;
  pages_.use(sequence);
  // Whether all that is left of `part` is in `whole`, too.
  const auto has_all_of = [&](const Sequence& whole, const Sequence& part) {
    const uint32_t n = common_prefix(shared_tokens(whole), shared_tokens(part));
    return n == part.tokens.size() && part.key == whole.key && pages_.reusable(whole, n) == n &&
           is_beginning(part.unread, shared_tokens(whole).subspan(n), whole.unread);
  };
  for (size_t i = 0; i < texts_.kept.size(); ++i) {
    if (has_all_of(texts_.kept[i], sequence)) {
      pages_.cut(sequence, 0);
      return touch(i);
    }
    if (has_all_of(sequence, texts_.kept[i])) drop(i--);
  }
  if (texts_.kept.size() == texts_.most_kept) drop(0);
  texts_.kept.push_back(std::move(sequence));
}

void Prefixes::shorten(uint64_t id, uint32_t n_kept) {
  const auto found = std::ranges::find(texts_.kept, id, &Sequence::id);
  if (found == texts_.kept.end()) return;
  finish(*found, n_kept);
  if (found->tokens.empty()) texts_.kept.erase(found);
}

void Prefixes::forget(uint64_t load) {
  for (size_t i = 0; i < texts_.kept.size();)
    if (texts_.kept[i].key.has_adapter(load))
      drop(i);
    else
      ++i;
}

bool Prefixes::has_unread() const {
  return std::ranges::any_of(texts_.kept,
                             [](const Sequence& each) { return !each.unread.empty(); });
}

std::optional<Unread> Prefixes::take_unread() {
  for (Sequence& sequence : std::views::reverse(texts_.kept)) {
    if (sequence.unread.empty()) continue;
    Unread unread{sequence.id, sequence.key, sequence.tokens};
    unread.tokens.insert(unread.tokens.end(), sequence.unread.begin(), sequence.unread.end());
    sequence.unread.clear();
    return unread;
  }
  return std::nullopt;
}

void Prefixes::drop(size_t index) {
  pages_.cut(texts_.kept[index], 0);
  texts_.kept.erase(texts_.kept.begin() + static_cast<ptrdiff_t>(index));
}

void Prefixes::touch(size_t index) {
  pages_.use(texts_.kept[index]);
  std::rotate(texts_.kept.begin() + static_cast<ptrdiff_t>(index),
              texts_.kept.begin() + static_cast<ptrdiff_t>(index) + 1, texts_.kept.end());
}

}  // namespace akunu
