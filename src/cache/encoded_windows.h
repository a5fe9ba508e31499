// What an encoder made of windows of speech: who has their pages, and which of them goes first. Texts with a
// window's number in their key read it; it stays, for other texts of the same window, until there is no
// room for another one.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/sequence_store.h"

namespace akunu {

// Verbs: take, lend, leave, forget. For one thread, and only while no submission is in flight.
class EncodedWindows {
 public:
  explicit EncodedWindows(KvCache& cache) : cache_(cache) {}

  // Sees to pages for a window; false where texts under way need too many of others.
  bool take(uint64_t id);
  // Gives a text that begins the pages of its window, and takes them from one that ended.
  void lend(Sequence& sequence);
  void leave(Sequence& sequence);

  // Whether the encoder has yet to fill the pages of a window, and that it has.
  bool is_to_fill(uint64_t id) const;
  void filled(uint64_t id);

  // Forgets what no sequence under way reads.
  void forget();

 private:
  struct Window {
    uint64_t id = 0;
    std::vector<uint32_t> pages = {};  // of the group of what an encoder made
    uint64_t last_use = 0;
    bool is_filled = false;
  };

  Window* find(uint64_t id);
  bool forget_one();

  KvCache& cache_;
  uint64_t n_uses_ = 0;
  std::vector<Window> windows_;
};

}  // namespace akunu
