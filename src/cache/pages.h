// The pages of texts, and which one goes where a text needs one and none is free.
//
// A page is spare if no running text needs it: its text ended, or its positions are outside a window. It stays until a
// text needs a page. Then the pages between the places where texts were continued go first, and after them the least
// recently used ones, from a text's end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/sequence_store.h"

namespace akunu {

// The texts that have pages.
struct CachedTexts {
  SequenceStore& running;
  const size_t most_kept;              // 0: a text that ended is forgotten
  std::vector<Sequence> kept = {};     // that ended, least recently used first
  const Sequence* restored = nullptr;  // a text that is being restored: its pages stay

  template <class Visit>
  void each_running(const Visit& visit) {
    for (uint32_t slot = 0; slot < running.n_sequences(); ++slot)
      if (running.is_used(slot)) visit(running[slot]);
  }
};

// Pages of a group that are not free.
struct PageCounts {
  uint32_t needed = 0;  // by running sequences
  uint32_t spare = 0;   // kept for later requests, until a text needs a page
};

// Verbs: take, share, give back, evict (which `take` and `own` do where no page is free). For one thread, and
// only while no submission is in flight.
class Pages {
 public:
  // Both must outlive this.
  Pages(KvCache& cache, CachedTexts& texts);

  uint32_t n_groups() const { return static_cast<uint32_t>(groups_.size()); }
  const GroupShape& shape(uint32_t group) const { return groups_[group].of.shape; }

  // A free page, or one that is spare; false where there is none.
  bool take(uint32_t group, uint32_t& page);
  // Gives the sequence pages up to this number of entries; false where there are none left.
  bool extend(Sequence& sequence, uint32_t group, uint32_t n_entries);
  // One more sequence has the page.
  void share(uint32_t group, uint32_t page) { groups_[group].of.pages.share(page); }
  // Replaces the pages that the sequence is going to write and shares by copies; false where none is free.
  bool own(Sequence& sequence);
  // Empties an entry.
  void give_back(uint32_t group, uint32_t& entry);
  // The entry is outside a window: its page is spare, or free where no text is kept.
  void leave_behind(uint32_t group, uint32_t& entry);
  // Cuts a sequence back to `n_tokens`, or further, to where every group can continue it.
  void cut(Sequence& sequence, uint32_t n_tokens);

  // The longest prefix, of at most `most` positions, that every group still has.
  uint32_t reusable(const Sequence& sequence, uint32_t most) const;
  // Pages that are free or spare, without `needed`.
  uint32_t available(uint32_t group, std::span<const uint32_t> needed);
  // All pages of the sequence are used now.
  void use(const Sequence& sequence);
  // Also while a submission is in flight.
  PageCounts count(uint32_t group);

 private:
  // How much a page is worth to the sequences that have it, in the order in which pages go.
  enum class Worth : uint8_t {
    none,       // in no sequence
    between,    // spare, and far from where its text was or is likely to be continued
    continued,  // spare, and near such a place
    needed,     // by a running sequence
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

  bool own(Sequence& sequence, uint32_t group, uint32_t entry, uint32_t n_positions);
  void rewind_states(Sequence& sequence, uint32_t n);

  // page_eviction.cpp
  Worth worth_of(const Sequence& sequence, bool is_kept, uint32_t group, uint32_t entry) const;
  void survey(uint32_t group);
  bool evict(uint32_t group);
  void give_up(uint32_t group, uint32_t page, const Sequence* except);

  KvCache& cache_;
  CachedTexts& texts_;
  uint64_t n_uses_ = 0;
  uint64_t n_counts_ = 0;
  std::vector<Group> groups_;
};

// Entries that a sequence can share which takes over n positions; what else it needs is copied.
inline Entries lent(const GroupShape& shape, uint32_t n) {
  return shape.ask([&](const auto& kind) { return kind.lent(n); });
}

}  // namespace akunu
