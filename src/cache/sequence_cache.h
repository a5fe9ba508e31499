// Who has which pages: the sequences under way, and those that ended and are kept because a later
// request may begin alike. A request takes over the longest prefix that any of them has: whole pages
// are shared, a partly filled one is copied.
//
// What is taken over has the bits that the request would compute itself. Rows that generate compute
// in another way than rows of a prompt. So of a text that ended its prompt is kept, and its generated
// tokens as tokens only: `unread` until somebody reads them as a prompt.
//
// What nobody under way needs is spare: texts that ended, and pages that a window has left behind. It
// stays until somebody needs a page, and then goes in this order: first what lies between the places
// where texts were continued, then the least recently used, from a text's end.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cache/moved_positions.h"
#include "cache/pages.h"
#include "cache/prefix_disk.h"
#include "cache/saved_positions.h"
#include "cache/sequences.h"

namespace akunu {

// What a sequence is to begin with.
struct Beginning {
  uint64_t id = 0;  // of the request
  PrefixKey key;
  std::span<const uint32_t> tokens;
  uint32_t n_prompt = 0;     // of the tokens: read as a prompt; those behind them were generated
  uint32_t n_positions = 0;  // it gets pages for them, or, where a window needs fewer, for those
  uint32_t most_reused = kNone;  // positions that it may take over
  uint64_t shares_with = 0;  // where no sequence is kept, that of this id is shared all the same
  // It takes over these positions, and nothing of other texts. Who begins it
  // turns the keys.
  const MovedPositions* moved = nullptr;
};

// Why a text took over no more positions of the cache than it did.
enum class PrefixEnd : uint8_t {
  untold,        // nobody looked yet: the text waits
  whole,         // all that it may: all tokens but the last one, whose logits are wanted
  off,           // nothing is kept for it
  outputs,       // the outputs of later rows are wanted, so they are computed
  unknown,       // no text in the cache begins with its first token, or none does any more
  differs,       // the next token of the text that it begins like is another one
  ends,          // the text that it begins like has no more tokens
  not_computed,  // that text has the next token, but not as a computed position of a prompt
  other_key,     // a text with other adapters or another window of speech begins like it for longer
  evicted,       // pages of the text that it begins like have gone
};

// For people and counters; the names above.
constexpr std::string_view name_of(PrefixEnd end) {
  switch (end) {
    case PrefixEnd::untold:
      return "";
    case PrefixEnd::whole:
      return "whole";
    case PrefixEnd::off:
      return "off";
    case PrefixEnd::outputs:
      return "outputs";
    case PrefixEnd::unknown:
      return "unknown";
    case PrefixEnd::differs:
      return "differs";
    case PrefixEnd::ends:
      return "ends";
    case PrefixEnd::not_computed:
      return "not_computed";
    case PrefixEnd::other_key:
      return "other_key";
    case PrefixEnd::evicted:
      return "evicted";
  }
  return "";
}

// What an encoder made of a window of speech, which texts with its number in their key read. It stays,
// for other texts of the same window, until there is no room for another one.
struct EncodedWindow {
  uint64_t id = 0;
  std::vector<uint32_t> pages;  // of the group of what an encoder made
  uint64_t last_use = 0;
  bool is_filled = false;
};

// A text that ended, and that has tokens which nobody has read as a prompt.
struct Unread {
  uint64_t id = 0;
  PrefixKey key;
  std::vector<uint32_t> tokens;  // from its first one on
};

// Pages of a group that are not free.
struct PageCounts {
  uint32_t needed = 0;  // by sequences under way
  uint32_t spare = 0;   // kept for later requests, until somebody needs a page
};

// For one thread, and only while no submission is in flight.
class SequenceCache {
 public:
  // Both must outlive this. `n_rows`: rows of one sequence that are in flight at a time, at most.
  // `keep`: sequences that ended are kept. `looks_ahead`: what is kept of a position depends on the token behind it,
  // too.
  SequenceCache(KvCache& cache, SequenceStore& store, uint32_t n_rows, bool keep,
                bool looks_ahead = false);

  // Of the sequence that begin() made last.
  PrefixEnd prefix_end() const { return prefix_end_; }
  // Likewise: the positions that it took over from the disk.
  uint32_t n_from_disk() const { return n_from_disk_; }
  // A slot for a sequence. Its n_done says how many positions it took over: never all of the tokens,
  // since the last one's logits are wanted. Nothing, and nothing changed, where slots or pages are
  // short.
  // `from_disk`: where it has more than the cache, the text's pages are filled from there.
  std::optional<uint32_t> begin(const Beginning& beginning, const RunsOnDisk* from_disk = nullptr);
  // Positions that it would take over from the cache.
  uint32_t n_there(const Beginning& beginning);
  // Gives the slot pages for positions up to `n_positions`; false where there are none left. To be
  // asked before every step, for prompt rows too: some layers get pages only as a text goes on.
  bool extend(uint32_t slot, uint32_t n_positions);
  // Positions for which the slot has pages: so far rows may run without another extend().
  uint32_t covered(uint32_t slot) const;
  // The first `n` positions are in the pages, or will be when what was submitted has run.
  void done(uint32_t slot, uint32_t n);

  // Rows ran up to there, though what they chose was not used (refused drafts, a mask that came late): of
  // states, the earliest ones that are kept have gone. They count until the next done().
  void ran(uint32_t slot, uint32_t n);

  // Whether the encoder has yet to fill the pages of a window, and that it has.
  bool is_to_fill(uint64_t window) const;
  void filled(uint64_t window);
  // Forgets what no sequence under way reads.
  void forget_windows();

  // Keeps what states are now, so that the text can rewind to here and others can go on from here.
  // False where there is no page for it. Without states there is nothing to do.
  bool checkpoint(uint32_t slot);

  // How many rows may run of which none counts, so that they run again: states know the way back to few
  // places.
  uint32_t most_again() const;

  // Whether the device's page tables lack pages that the slot has.
  bool has_unsent(uint32_t slot) const;
  // Those pages, to be sent before the next step; from now on they count as sent. The bytes stay
  // where they are while the slot is taken, the list until the next call.
  std::span<const Update> take_unsent(uint32_t slot);

  // The text is over: frees the slot and keeps the sequence, of which at most `n_kept` tokens. Those
  // that were not read as a prompt are unread.
  void end(uint32_t slot, uint32_t n_kept);
  // The text will begin again: frees the slot and keeps all of the sequence, for itself too.
  void set_aside(uint32_t slot);
  // Frees the slot and forgets the sequence.
  void discard(uint32_t slot);
  // The text of a sequence that is kept is over after `n_kept` tokens: forgets what comes after them.
  void shorten(uint64_t id, uint32_t n_kept);

  // saved_positions.cpp
  // Copies what the slot has of its positions. `saved` says from which entries on, and has room.
  void read_positions(uint32_t slot, SavedPositions& saved) const;
  // Room for all that the slot's next rows see.
  SavedPositions room_for_positions(uint32_t slot) const;
  // Keeps a text that was saved, for others to go on from; returns how many of its positions are there
  // now: as many as have room, others that ended giving way; 0 where nothing is kept. `saved` has as
  // many bytes as it must.
  uint32_t restore(uint64_t id, const PrefixKey& key, std::span<const uint32_t> tokens,
                   const SavedPositions& saved);

  // stored_runs.cpp
  // Of those that ended and that the disk may lack something of, the one that goes first.
  bool has_unstored() const { return unstored() != nullptr; }
  const Sequence* unstored() const;
  void set_stored(uint64_t id);
  // Nobody will read what was generated: texts end where they were read to.
  void forget_unread();
  // After how many positions, up to n, a kept sequence has its states; empty in a cache without states.
  std::vector<uint32_t> places_of_states(const Sequence& sequence, uint32_t n) const;
  // Its states behind such a place.
  RunPages copy_states(const Sequence& sequence, uint32_t place) const;
  // What a kept sequence has of the page of an entry.
  RunPages copy_page(const Sequence& sequence, uint32_t entry, uint32_t n_positions) const;

  bool has_unread() const;
  // Of those with unread tokens, the text that was used last. It counts as read from now on.
  std::optional<Unread> take_unread();

  size_t n_kept() const { return kept_.size(); }
  // May be asked while a submission is in flight.
  PageCounts count_pages(uint32_t group);

 private:
  struct Source {
    const Sequence* sequence = nullptr;
    std::optional<size_t> kept;  // its index in kept_, unless it is under way
    uint32_t n_positions = 0;    // of it that can be taken over
    uint32_t n_same = 0;         // tokens that begin alike, of this or another sequence
    PrefixEnd end = PrefixEnd::untold;
  };
  // How much a page is worth to whoever holds it, in the order in which pages go.
  enum class Worth : uint8_t {
    none,       // in no sequence
    between,    // spare, and far from where its text was or is likely to be continued
    continued,  // spare, and near such a place
    needed,     // by a sequence under way
  };
  struct PageState {
    Worth worth = Worth::none;
    uint32_t entry = 0;
    uint64_t last_use = 0;
    uint64_t last_count = 0;  // the last one in which it was needed
  };
  struct Group {
    CacheGroup& of;
    std::vector<PageState> pages;
  };

  // encoded_windows.cpp
  EncodedWindow* find_window(uint64_t id);
  bool take_window(uint64_t id);
  bool forget_one_window();
  bool is_of_window(const PrefixKey& key, uint32_t group) const {
    return key.window != 0 && groups_[group].of.shape.is_cross();
  }
  void leave_window(Sequence& sequence);

  uint32_t n_usable(const Sequence& sequence, const Beginning& beginning) const;
  Source find(const Beginning& beginning);
  Source longest(const Beginning& beginning, Sequence*& most_alike);
  uint32_t usable(const RunsOnDisk& from_disk, const Beginning& beginning,
                  uint32_t n_positions) const;
  bool drop_part_of_page(Sequence& sequence);
  std::span<const std::byte> bytes_of(const RunPages& pages, uint32_t group) const;
  bool fill(Sequence& sequence, const RunsOnDisk& from_disk, uint32_t n_positions);
  PrefixEnd why_no_more(const Beginning& beginning, uint32_t n_positions) const;
  uint32_t reusable(const Sequence& sequence, uint32_t most) const;
  uint32_t n_available(uint32_t group, const Source& source, uint32_t first_needed = 0);
  void share(const Source& source, Sequence& with);
  bool own_what_it_writes(Sequence& sequence);
  bool own(Sequence& sequence, uint32_t group, uint32_t entry, uint32_t n_positions);
  void take_over_states(const Sequence& from, Sequence& with, uint32_t group);
  bool extend(Sequence& sequence, uint32_t group, uint32_t n_entries);
  bool take_page(uint32_t group, uint32_t& page);
  Entries shared_with(const Source& source, uint32_t group, const SavedPositions& saved) const;
  uint32_t restorable(const Source& source, const SavedPositions& saved, uint32_t n);
  void write_positions(const Sequence& sequence, const SavedPositions& saved, uint32_t n);
  void survey(uint32_t group);
  Worth worth_of(const Sequence& sequence, bool is_kept, uint32_t group, uint32_t entry) const;
  bool evict_page(uint32_t group);
  void give_up(uint32_t group, uint32_t page, const Sequence* except);
  void release(uint32_t group, uint32_t& entry);
  void use(const Sequence& sequence);
  void cut(Sequence& sequence, uint32_t n_tokens);
  void rewind_states(Sequence& sequence, uint32_t n);
  void finish(Sequence& sequence, uint32_t n_kept);
  void keep(Sequence&& sequence);
  void drop(size_t kept_index);
  void touch(size_t kept_index);

  KvCache& cache_;
  SequenceStore& store_;
  const uint32_t n_rows_;
  const size_t most_kept_;
  const bool looks_ahead_;
  uint64_t n_uses_ = 0;
  uint64_t n_counts_ = 0;
  std::vector<Group> groups_;
  std::vector<EncodedWindow> windows_;
  std::vector<Sequence> kept_;          // least recently used first
  const Sequence* restored_ = nullptr;  // while restore() looks for pages: what it has stays
  PrefixEnd prefix_end_ = PrefixEnd::untold;
  uint32_t n_from_disk_ = 0;
  std::vector<Update> updates_;  // what take_unsent returned last
};

}  // namespace akunu
