// SequenceCache against what it promises: no page is lost or written by two, what a sequence takes
// over is what its own tokens would have written, and room is found as long as there is any.
#include "cache/sequence_cache.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "registry.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

constexpr uint32_t kPages = 6;
constexpr uint32_t kSlots = 4;
constexpr uint32_t kHeadDim = 2;
constexpr uint32_t kHeads = 2;

ArchDescriptor two_layers() {
  ArchDescriptor arch;
  arch.layers.resize(2);
  for (LayerDescriptor& layer : arch.layers) {
    layer.n_heads = layer.n_kv_heads = kHeads;
    layer.head_dim = kHeadDim;
  }
  return arch;
}

// For each position a number that stands for all tokens up to it: what keys and values depend on.
std::vector<uint32_t> histories(std::span<const uint32_t> tokens) {
  std::vector<uint32_t> hashes;
  uint32_t hash = 2166136261u;  // FNV
  for (const uint32_t token : tokens) hashes.push_back(hash = (hash ^ token) * 16777619u);
  return hashes;
}

class Harness {
 public:
  explicit Harness(bool keep = true, uint32_t n_pages = kPages)
      : device_(create_device("cpu", {.threads = 1})),
        pages_(device_, two_layers(), Format::f32, n_pages),
        store_(device_, kSlots, n_pages * kPagePositions, 1),
        cache_(pages_, store_, keep),
        n_pages_(n_pages) {}

  SequenceCache& cache() { return cache_; }
  SequenceStore& store() { return store_; }
  PagePool& pool() { return pages_.groups()[0].pages; }

  // Runs tokens [n_done, n) of a sequence, whose pages must be there.
  void run(uint32_t slot, uint32_t n) {
    Sequence& sequence = store_[slot];
    const std::vector<uint32_t> hashes = histories(sequence.tokens);
    for (; sequence.n_done < n; ++sequence.n_done)
      each_number(sequence, sequence.n_done, hashes, [&](const Binding& at, float number) {
        device_->write(at, std::as_bytes(std::span(&number, 1)));
      });
  }

  bool holds_its_own(uint32_t slot) {
    bool same = true;
    const Sequence& sequence = store_[slot];
    const std::vector<uint32_t> hashes = histories(sequence.tokens);
    for (uint32_t position = 0; position < sequence.n_done; ++position)
      each_number(sequence, position, hashes, [&](const Binding& at, float expected) {
        float found = 0;
        device_->read(at, std::as_writable_bytes(std::span(&found, 1)));
        same = same && found == expected;
      });
    return same;
  }

  // Pages that sequences under way have, each counted once.
  size_t n_pages_under_way() {
    std::set<uint32_t> pages;
    for (uint32_t slot = 0; slot < kSlots; ++slot)
      if (store_.is_used(slot))
        pages.insert(store_[slot].pages[0].begin(), store_[slot].pages[0].end());
    return pages.size();
  }

  bool counts_are_right() {
    uint32_t n_used = 0;
    for (uint32_t page = 0; page < n_pages_; ++page) n_used += pool().references(page) > 0;
    return n_used + pool().n_free() == n_pages_;
  }

 private:
  template <class Use>
  void each_number(const Sequence& sequence, uint32_t position, std::span<const uint32_t> hashes,
                   Use&& use) {
    const uint64_t page = sequence.pages[0][position / kPagePositions];
    for (size_t layer = 0; layer < 2; ++layer)
      for (uint32_t head = 0; head < kHeads; ++head)
        for (const bool is_value : {false, true}) {
          const LayerCache& memory = pages_.layers()[layer];
          Binding at = is_value ? memory.values : memory.keys;
          const uint64_t row = (page * kHeads + head) * kPagePositions + position % kPagePositions;
          at.offset += (row * kHeadDim + kHeadDim - 1) * sizeof(float);
          const auto place = static_cast<uint32_t>(layer * 4 + head * 2) + is_value;
          use(at, static_cast<float>(((hashes[position] ^ (place << 24)) >> 8)));
        }
  }

  std::shared_ptr<Device> device_;
  KvCache pages_;
  SequenceStore store_;
  SequenceCache cache_;
  uint32_t n_pages_;
};

std::vector<uint32_t> tokens_of(uint32_t n_shared, uint32_t n, uint32_t seed) {
  std::vector<uint32_t> tokens(n);
  for (uint32_t i = 0; i < n; ++i) tokens[i] = i < n_shared ? i : i + 1000 * (seed + 1);
  return tokens;
}

uint32_t size_of(std::span<const uint32_t> tokens) { return static_cast<uint32_t>(tokens.size()); }

// How many positions a sequence of these tokens takes over; it ends again.
uint32_t n_reused(Harness& harness, const std::vector<uint32_t>& tokens) {
  const auto slot = harness.cache().begin(99, tokens, size_of(tokens), kNone);
  if (!slot) return kNone;
  const uint32_t n = harness.store()[*slot].n_done;
  check(harness.holds_its_own(*slot), "what is taken over is what the tokens stand for");
  harness.cache().discard(*slot);
  return n;
}

uint32_t run_text(Harness& harness, uint64_t id, const std::vector<uint32_t>& tokens) {
  const auto slot = harness.cache().begin(id, tokens, size_of(tokens), kNone);
  check(slot.has_value(), "there is room");
  harness.run(*slot, size_of(tokens));
  return *slot;
}

void test_lengths_of_prefixes() {
  for (const uint32_t n_shared : {1u, 255u, 256u, 257u, 511u, 512u, 513u}) {
    Harness harness;
    const std::vector<uint32_t> first = tokens_of(n_shared, n_shared + 20, 1);
    harness.cache().end(run_text(harness, 1, first), kNone);
    const std::vector<uint32_t> second = tokens_of(n_shared, n_shared + 40, 2);
    check(n_reused(harness, second) == n_shared, "the longest common prefix is taken over");
    check(n_reused(harness, first) == n_shared + 19, "of a whole prompt all but one token");
    const auto slot = harness.cache().begin(3, second, size_of(second), n_shared / 2);
    check(harness.store()[*slot].n_done == n_shared / 2, "no more than asked for");
    harness.cache().discard(*slot);
    harness.cache().shorten(1, n_shared / 2);
    check(n_reused(harness, second) == n_shared / 2, "what was cut off is not found");
    harness.cache().shorten(1, 0);
    check(n_reused(harness, second) == 0 && harness.pool().n_free() == kPages,
          "a text cut to nothing leaves nothing");
  }
}

void test_sharing_with_what_is_under_way() {
  Harness harness;
  const std::vector<uint32_t> tokens = tokens_of(600, 600, 0);
  const uint32_t one = run_text(harness, 1, tokens);
  const std::vector<uint32_t> longer = tokens_of(600, 700, 1);
  const uint32_t two = run_text(harness, 2, longer);
  check(harness.store()[two].pages[0][1] == harness.store()[one].pages[0][1] &&
            harness.store()[two].pages[0][2] != harness.store()[one].pages[0][2],
        "whole pages are shared, a partly filled one is copied");
  check(harness.n_pages_under_way() == 4, "two texts of three pages have four");
  check(harness.holds_its_own(one) && harness.holds_its_own(two), "neither writes to the other");
}

void test_a_text_that_goes_on_copies_nothing() {
  Harness harness(true, 3);
  harness.cache().end(run_text(harness, 1, tokens_of(700, 700, 0)), kNone);
  const uint32_t slot = run_text(harness, 2, tokens_of(700, 760, 0));
  check(harness.holds_its_own(slot) && harness.n_pages_under_way() == 3,
        "a pool that is full with a text has room for its continuation");
  harness.cache().end(slot, kNone);
  check(harness.cache().n_kept() == 1, "a text that was gone on from is not kept beside it");
  harness.cache().end(run_text(harness, 3, tokens_of(300, 768, 1)), kNone);
  check(n_reused(harness, tokens_of(700, 700, 0)) == 300, "the oldest gives way, from its end");
}

void test_least_recently_used_goes_first() {
  Harness harness(true, 3);
  for (uint32_t i = 0; i < 3; ++i)
    harness.cache().end(run_text(harness, i, tokens_of(0, 200, i)), kNone);
  check(n_reused(harness, tokens_of(0, 200, 0)) == 199, "all three are there");
  harness.cache().end(run_text(harness, 9, tokens_of(0, 200, 9)), kNone);
  check(n_reused(harness, tokens_of(0, 150, 0)) == 149, "what was used lately stays");
  check(n_reused(harness, tokens_of(0, 150, 1)) == 0, "what was not is gone");
}

void test_a_refusal_changes_nothing() {
  Harness harness(true, 3);
  harness.cache().end(run_text(harness, 1, tokens_of(300, 300, 0)), kNone);
  run_text(harness, 2, tokens_of(0, 10, 1));
  // One of its three pages could be shared, and one more be had.
  const std::vector<uint32_t> tokens = tokens_of(300, 600, 2);
  check(!harness.cache().begin(3, tokens, 600, kNone), "without room a sequence does not begin");
  check(n_reused(harness, tokens_of(300, 301, 3)) == 300, "and takes nothing from anybody");
}

void test_nothing_is_kept_on_request() {
  Harness harness(false);
  harness.cache().end(run_text(harness, 1, tokens_of(300, 300, 0)), kNone);
  check(harness.pool().n_free() == kPages && n_reused(harness, tokens_of(300, 300, 0)) == 0,
        "without prefixes every page is free at the end");
}

void test_what_the_device_lacks_is_sent_once() {
  Harness harness;
  SequenceCache& cache = harness.cache();
  const uint32_t slot = *cache.begin(1, tokens_of(300, 300, 0), 300, kNone);
  check(cache.covered(slot) == 512, "two pages cover 512 positions");
  check(cache.has_unsent(slot), "a text that begins has pages that the device does not know");
  const std::span<const Update> first = cache.take_unsent(slot);
  check(first.size() == 1 && first[0].bytes.size() == 2 * sizeof(uint32_t) &&
            first[0].destination.offset == harness.store().page_table(0, slot).offset,
        "both are sent to the beginning of its page table");
  check(!cache.has_unsent(slot) && cache.take_unsent(slot).empty(), "but only once");
  check(cache.extend(slot, 512) && !cache.has_unsent(slot), "pages that are there are no news");
  check(cache.extend(slot, 513) && cache.covered(slot) == 768, "one position more is a page more");
  const std::span<const Update> second = cache.take_unsent(slot);
  check(second.size() == 1 && second[0].bytes.size() == sizeof(uint32_t) &&
            second[0].destination.offset == harness.store().page_table(0, slot, 2).offset,
        "which alone is sent");
  cache.end(slot, kNone);
  const uint32_t next = *cache.begin(2, tokens_of(0, 10, 1), 10, kNone);
  check(next == slot && cache.take_unsent(next).size() == 1, "a slot's next text is sent anew");
}

// Texts from a family with prefixes around the ends of pages come, grow, end, and are given up.
void test_at_random(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Harness harness(seed % 4 != 0);
  const std::array<uint32_t, 8> edges{1, 100, 255, 256, 257, 300, 512, 600};
  bool well = true;
  uint32_t n_began = 0, n_refused = 0, n_over = 0;
  for (uint64_t id = 1; id < 400; ++id) {
    const uint32_t slot = below(kSlots);
    if (!harness.store().is_used(slot)) {
      const uint32_t shared = edges[below(8)];
      const auto tokens = tokens_of(shared, shared + 1 + below(300), below(3));
      const uint32_t n_positions = std::min(size_of(tokens) + below(2), kPages * kPagePositions);
      const size_t before = harness.n_pages_under_way();
      const auto found = harness.cache().begin(id, tokens, n_positions, kNone);
      if (!found) {
        ++n_refused;
        well = well && before + pages_for(n_positions) > kPages;
        continue;
      }
      ++n_began;
      n_over += harness.store()[*found].n_done;
      well =
          well && harness.store()[*found].n_done < tokens.size() && harness.holds_its_own(*found);
      harness.run(*found, below(4) ? size_of(tokens) : size_of(tokens) / 2);
      continue;
    }
    Sequence& sequence = harness.store()[slot];
    const uint32_t what = below(8);
    if (what < 5) {  // it goes on
      const uint32_t n = sequence.n_done + 1 + below(90);
      if (n > kPages * kPagePositions) continue;
      if (!harness.cache().extend(slot, n)) {
        well = well && harness.n_pages_under_way() == kPages;
        harness.cache().end(slot, kNone);
        continue;
      }
      while (sequence.tokens.size() < n) sequence.tokens.push_back(5000 + below(3));
      harness.run(slot, n);
    } else if (what == 5) {
      harness.cache().discard(slot);
    } else {
      harness.cache().end(slot, below(2) ? kNone : below(700));
      if (what == 7) harness.cache().shorten(id - 1 - below(20), below(500));
    }
    for (uint32_t each = 0; each < kSlots; ++each)
      if (harness.store().is_used(each) && below(4) == 0)
        well = well && harness.holds_its_own(each);
    well = well && harness.counts_are_right();
  }
  for (uint32_t slot = 0; slot < kSlots; ++slot)
    if (harness.store().is_used(slot)) {
      well = well && harness.holds_its_own(slot);
      harness.cache().end(slot, kNone);
    }
  check(well, "at random, seed " + std::to_string(seed));
  check(n_began > 20 && n_refused > 0 && (n_over > 1000 || seed % 4 == 0), "much happened");
  const std::vector<uint32_t> whole = tokens_of(0, kPages * kPagePositions, 7);
  check(n_reused(harness, whole) == 0, "in the end one text can have every page");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_lengths_of_prefixes();
  test_sharing_with_what_is_under_way();
  test_a_text_that_goes_on_copies_nothing();
  test_least_recently_used_goes_first();
  test_a_refusal_changes_nothing();
  test_nothing_is_kept_on_request();
  test_what_the_device_lacks_is_sent_once();
  for (uint32_t seed = 0; seed < 40; ++seed) test_at_random(seed);
  return summary();
}
