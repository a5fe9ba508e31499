// Which sequence in the cache, running or ended, has the longest prefix in common with a new one, and why that is no
// longer. A search goes over all sequences.
#include <algorithm>
#include <ranges>
#include <utility>

#include "cache/prefixes.h"

namespace akunu {
namespace {

// Positions whose keys and values have exactly the bits that `beginning` would compute. Generated
// positions count only where both prompts end at the same place, as when a text that was set aside
// begins again: kernels for prompts round in another way than those for single rows.
uint32_t n_alike(const Sequence& sequence, const Beginning& beginning) {
  const std::span done =
      std::span(sequence.tokens).first(std::min(sequence.n_done, sequence.n_exact));
  const uint32_t n = common_prefix(done, beginning.tokens);
  if (sequence.n_prompt == beginning.n_prompt) return n;
  return std::min({n, sequence.n_prompt, beginning.n_prompt});
}

// Tokens that both begin with, whether they were computed or not.
uint32_t n_common(const Sequence& sequence, const Beginning& beginning) {
  const uint32_t n = common_prefix(sequence.tokens, beginning.tokens);
  return n < sequence.tokens.size()
             ? n
             : n + common_prefix(sequence.unread, beginning.tokens.subspan(n));
}

}  // namespace

// Positions of n_alike that have what `beginning` would keep: where that depends on the next token, all whose next
// token is the same, too.
uint32_t Prefixes::n_usable(const Sequence& sequence, const Beginning& beginning) const {
  const uint32_t n = n_alike(sequence, beginning);
  if (!looks_ahead_ || n == 0) return n;
  return std::min(n, n_common(sequence, beginning) - 1);
}

// `most_alike`: the text that begins alike for longest, also where its pages have gone.
Prefix Prefixes::longest(const Beginning& beginning, Sequence*& most_alike) {
  Prefix best;
  const uint32_t most =
      std::min(beginning.most_reused, static_cast<uint32_t>(beginning.tokens.size()) - 1);
  const bool is_shared =
      beginning.key.window != 0 ||
      std::ranges::all_of(std::views::iota(0u, pages_.n_groups()), [&](uint32_t group) {
        return pages_.shape(group).ask([](const auto& kind) { return kind.kIsShared; });
      });
  const auto consider = [&](Sequence& sequence, std::optional<size_t> kept) {
    if (sequence.key != beginning.key || (!is_shared && sequence.id != beginning.id)) return;
    if (texts_.most_kept == 0 && sequence.id != beginning.shares_with) return;
    const uint32_t n = n_usable(sequence, beginning);
    if (n > best.n_same) {
      best.n_same = n;
      most_alike = &sequence;
    }
    const uint32_t n_reusable = pages_.reusable(sequence, std::min(most, n));
    if (n_reusable > best.n_positions) {
      best.sequence = &sequence;
      best.kept = kept;
      best.n_positions = n_reusable;
    }
  };
  for (size_t i = texts_.kept.size(); i-- > 0;) consider(texts_.kept[i], i);
  texts_.each_running([&](Sequence& sequence) { consider(sequence, std::nullopt); });
  return best;
}

Prefix Prefixes::longest(const Beginning& beginning) {
  Sequence* most_alike = nullptr;
  return longest(beginning, most_alike);
}

Prefix Prefixes::find(const Beginning& beginning) {
  Sequence* most_alike = nullptr;
  Prefix best;
  if (texts_.most_kept == 0 && beginning.shares_with == 0) {
    best.end = PrefixEnd::off;
    return best;
  }
  best = longest(beginning, most_alike);
  best.end = why_no_more(beginning, best.n_positions);
  // Remember where this text leaves the other one, so that the pages there are kept. Not where they
  // share less than a page: that is computed again as fast.
  const uint32_t n_same = std::exchange(best.n_same, 0);
  if (n_same >= kPagePositions && n_same < n_shared(*most_alike)) {
    most_alike->part(n_same);
    best.n_same = n_same;
  }
  return best;
}

// What the longest beginning in the cache lacks for `beginning` to take over more than n_positions.
PrefixEnd Prefixes::why_no_more(const Beginning& beginning, uint32_t n_positions) const {
  const auto most = static_cast<uint32_t>(beginning.tokens.size()) - 1;
  if (n_positions == most) return PrefixEnd::whole;
  if (n_positions == beginning.most_reused) return PrefixEnd::outputs;
  uint32_t most_common = 0;  // tokens, computed or not, that a text with the same key begins with
  uint32_t n_computed = 0;  // positions of such a text that could be shared if all pages were there
  uint32_t n_other = 0;     // computed positions of texts with another key
  bool goes_on = false;     // the text of most_common tokens has another token there
  const auto look_at = [&](const Sequence& sequence) {
    const uint32_t n_done = n_usable(sequence, beginning);
    if (sequence.key != beginning.key) {
      n_other = std::max(n_other, n_done);
      return;
    }
    n_computed = std::max(n_computed, n_done);
    const uint32_t n = n_common(sequence, beginning);
    const bool has_more = n < sequence.tokens.size() + sequence.unread.size();
    if (n > most_common) goes_on = false;
    if (n >= most_common) goes_on |= has_more;
    most_common = std::max(most_common, n);
  };
  for (const Sequence& sequence : texts_.kept) look_at(sequence);
  texts_.each_running(look_at);
  if (std::min(n_computed, most) > n_positions) return PrefixEnd::evicted;
  if (n_other > n_positions) return PrefixEnd::other_key;
  if (std::min(most_common, most) > n_positions) return PrefixEnd::not_computed;
  if (most_common == 0) return PrefixEnd::unknown;
  return goes_on ? PrefixEnd::differs : PrefixEnd::ends;
}

}  // namespace akunu
