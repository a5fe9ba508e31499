// Texts that ended and are kept because a later request may begin alike. A request takes over the longest prefix
// that any text, running or ended, has: whole pages are shared, a partly filled one is copied.
//
// Those positions have the bits that the request would compute itself. Rows that generate compute
// in another way than rows of a prompt. So of a text that ended its prompt is kept, and its generated
// tokens as tokens only: `unread` until a reading task reads them as a prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/moved_positions.h"
#include "cache/pages.h"
#include "cache/sequence_store.h"

namespace akunu {

// What a sequence is to begin with.
struct Beginning {
  uint64_t id = 0;  // of the request
  PrefixKey key;
  std::span<const uint32_t> tokens;
  uint32_t n_prompt = 0;     // of the tokens: read as a prompt; those after them were generated
  uint32_t n_positions = 0;  // it gets pages for them, or, where a window needs fewer, for those
  uint32_t most_reused = kNone;  // positions that it may take over
  uint64_t shares_with = 0;  // where no sequence is kept, that of this id is shared all the same
  // It takes over these positions, and nothing of other texts. The caller turns the keys.
  const MovedPositions* moved = nullptr;
};

// A prefix that a text can take over.
struct Prefix {
  const Sequence* sequence = nullptr;  // that has it
  std::optional<size_t> kept = {};  // the sequence's index in the kept ones, unless it is running
  uint32_t n_positions = 0;         // of it that can be taken over
  uint32_t n_same = 0;              // tokens that begin alike, of this or another sequence
  PrefixEnd end = PrefixEnd::untold;

  // Its pages of a group that can be shared, from an entry on.
  std::span<const uint32_t> lent_pages(const GroupShape& shape, uint32_t group,
                                       uint32_t first = 0) const;
};

// A text that ended, and that has tokens which were not read as a prompt.
struct Unread {
  uint64_t id = 0;
  PrefixKey key;
  std::vector<uint32_t> tokens;  // from its first one on
};

// Verbs: find, lend, keep, forget. For one thread, and only while no submission is in flight.
class Prefixes {
 public:
  // `looks_ahead`: what is kept of a position depends on the next token, too.
  Prefixes(CachedTexts& texts, Pages& pages, bool looks_ahead);

  // prefix_search.cpp
  // The longest prefix, why it is no longer, and where the two texts part: the place is remembered.
  Prefix find(const Beginning& beginning);
  // The longest prefix, and nothing remembered.
  Prefix longest(const Beginning& beginning);

  // Gives `with` every page of the prefix that it can use.
  void lend(const Prefix& prefix, Sequence& with);

  // Keeps a text that is over, of which at most `n_kept` tokens; those that were not read as a prompt are unread.
  void keep(Sequence&& sequence, uint32_t n_kept);
  // Keeps the sequence as it is.
  void add(Sequence&& sequence);
  // A kept text is over after `n_kept` tokens: forgets later ones.
  void shorten(uint64_t id, uint32_t n_kept);

  // Forgets the kept texts that have the adapter of this load.
  void forget(uint64_t load);

  size_t size() const { return texts_.kept.size(); }
  bool has_unread() const;
  // The text with unread tokens that was used last. It counts as read from now on.
  std::optional<Unread> take_unread();

 private:
  uint32_t n_usable(const Sequence& sequence, const Beginning& beginning) const;
  Prefix longest(const Beginning& beginning, Sequence*& most_alike);
  PrefixEnd why_no_more(const Beginning& beginning, uint32_t n_positions) const;
  void lend_states(const Sequence& from, Sequence& with, uint32_t group);
  void finish(Sequence& sequence, uint32_t n_kept);
  void drop(size_t index);
  void touch(size_t index);

  CachedTexts& texts_;
  Pages& pages_;
  const bool looks_ahead_;
};

}  // namespace akunu
