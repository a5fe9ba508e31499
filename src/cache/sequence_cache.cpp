#include "cache/sequence_cache.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace akunu {
namespace {

// More would cost more to search than a long prefix saves.
constexpr uint32_t kMostKept = 64;

size_t common_prefix(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::span<const uint32_t> tokens_done(const Sequence& sequence) {
  return std::span(sequence.tokens).first(sequence.n_done);
}

}  // namespace

SequenceCache::SequenceCache(KvCache& cache, SequenceStore& store, bool keep)
    : cache_(cache),
      store_(store),
      most_kept_(keep ? std::min(cache.groups()[0].pages.n_pages(), kMostKept) : 0) {
  kept_.reserve(most_kept_);
  kept_references_.resize(cache.groups()[0].pages.n_pages());
  updates_.reserve(cache.groups().size());
}

uint32_t SequenceCache::n_free() {
  uint32_t n = ~0u;
  for (const CacheGroup& group : groups()) n = std::min(n, group.pages.n_free());
  return n;
}

// Pages that are free or can be had by evicting, without the whole pages that `source` lends.
uint32_t SequenceCache::n_available(const Source& source) {
  uint32_t least = ~0u;
  for (size_t group = 0; group < groups().size(); ++group) {
    const PagePool& pool = groups()[group].pages;
    std::ranges::fill(kept_references_, 0);
    for (const Sequence& sequence : kept_)
      for (const uint32_t page : sequence.pages[group]) ++kept_references_[page];
    for (uint32_t i = 0; i < source.n_positions / kPagePositions; ++i)
      kept_references_[source.sequence->pages[group][i]] = 0;
    uint32_t n = pool.n_free();
    for (uint32_t page = 0; page < pool.n_pages(); ++page)
      n += kept_references_[page] > 0 && kept_references_[page] == pool.references(page);
    least = std::min(least, n);
  }
  return least;
}

SequenceCache::Source SequenceCache::find(std::span<const uint32_t> tokens,
                                          uint32_t most_reused) const {
  Source best;
  const size_t most = std::min<size_t>(most_reused, tokens.size() - 1);
  const auto consider = [&](const Sequence& sequence, std::optional<size_t> kept) {
    const size_t n = std::min(most, common_prefix(tokens_done(sequence), tokens));
    if (n > best.n_positions) best = {&sequence, kept, static_cast<uint32_t>(n)};
  };
  if (most_kept_ == 0) return best;
  for (size_t i = kept_.size(); i-- > 0;) consider(kept_[i], i);
  for (uint32_t slot = 0; slot < store_.n_sequences(); ++slot)
    if (store_.is_used(slot)) consider(store_[slot], std::nullopt);
  return best;
}

std::optional<uint32_t> SequenceCache::begin(uint64_t id, std::span<const uint32_t> tokens,
                                             uint32_t n_positions, uint32_t most_reused) {
  const Source source = find(tokens, most_reused);
  const uint32_t n_pages = pages_for(n_positions);
  if (n_available(source) < n_pages - source.n_positions / kPagePositions) return std::nullopt;
  const std::optional<uint32_t> slot = store_.take();
  if (!slot) return std::nullopt;

  Sequence& sequence = store_[*slot];
  sequence.id = id;
  sequence.tokens.reserve(store_.log_stride());
  sequence.tokens.assign(tokens.begin(), tokens.end());
  sequence.pages.resize(groups().size());
  for (std::vector<uint32_t>& pages : sequence.pages) pages.reserve(store_.page_table_stride());
  sequence.n_sent.assign(groups().size(), 0);
  share(source, sequence);
  if (own_last_page(sequence) && extend(*slot, n_positions)) return slot;
  assert(false);  // n_available counted wrongly
  discard(*slot);
  return std::nullopt;
}

// Gives `with` every page of the source that it can use, the last one perhaps only in part.
void SequenceCache::share(const Source& source, Sequence& with) {
  with.n_done = source.n_positions;
  for (size_t group = 0; group < groups().size(); ++group)
    for (uint32_t i = 0; i < pages_for(source.n_positions); ++i) {
      with.pages[group].push_back(source.sequence->pages[group][i]);
      groups()[group].pages.share(with.pages[group].back());
    }
  if (!source.kept) return;
  if (source.sequence->tokens.size() == source.n_positions)
    drop(*source.kept);  // `with` has all of it
  else
    touch(*source.kept);
}

// A page that the sequence is going to write must be its own.
bool SequenceCache::own_last_page(Sequence& sequence) {
  const uint32_t n_positions = sequence.n_done % kPagePositions;
  if (n_positions == 0) return true;
  for (uint32_t group = 0; group < groups().size(); ++group) {
    PagePool& pool = groups()[group].pages;
    uint32_t& last = sequence.pages[group].back();
    // Evicting may leave the page to this sequence alone.
    while (pool.references(last) > 1 && pool.n_free() == 0 && evict_page()) continue;
    if (pool.references(last) == 1) continue;
    uint32_t page = 0;
    if (!pool.take(std::span(&page, 1))) return false;
    cache_.copy_positions(group, last, page, n_positions);
    pool.release(last);
    last = page;
  }
  return true;
}

bool SequenceCache::add_page(Sequence& sequence) {
  if (n_free() == 0 && !evict_page()) return false;
  for (size_t group = 0; group < groups().size(); ++group) {
    uint32_t page = 0;
    groups()[group].pages.take(std::span(&page, 1));
    sequence.pages[group].push_back(page);
  }
  return true;
}

bool SequenceCache::extend(uint32_t slot, uint32_t n_positions) {
  Sequence& sequence = store_[slot];
  while (sequence.pages[0].size() < pages_for(n_positions))
    if (!add_page(sequence)) return false;
  return true;
}

uint32_t SequenceCache::covered(uint32_t slot) const {
  uint64_t least = store_.context();
  for (const std::vector<uint32_t>& pages : store_[slot].pages)
    least = std::min<uint64_t>(least, uint64_t{kPagePositions} * pages.size());
  return static_cast<uint32_t>(least);
}

void SequenceCache::done(uint32_t slot, uint32_t n) { store_[slot].n_done = n; }

bool SequenceCache::has_unsent(uint32_t slot) const {
  const Sequence& sequence = store_[slot];
  for (size_t group = 0; group < sequence.pages.size(); ++group)
    if (sequence.n_sent[group] < sequence.pages[group].size()) return true;
  return false;
}

std::span<const Update> SequenceCache::take_unsent(uint32_t slot) {
  updates_.clear();
  Sequence& sequence = store_[slot];
  for (uint32_t group = 0; group < sequence.pages.size(); ++group) {
    const std::vector<uint32_t>& pages = sequence.pages[group];
    const auto n = static_cast<uint32_t>(pages.size());
    const uint32_t n_sent = std::exchange(sequence.n_sent[group], n);
    if (n_sent < n)
      updates_.push_back({store_.page_table(group, slot, n_sent),
                          std::as_bytes(std::span(pages).subspan(n_sent))});
  }
  return updates_;
}

// Frees a page in every group, of the end of what was not used for the longest time.
bool SequenceCache::evict_page() {
  while (!kept_.empty()) {
    const uint32_t before = n_free();
    Sequence& oldest = kept_.front();
    const auto n_pages = static_cast<uint32_t>(oldest.pages[0].size());
    cut(oldest, (n_pages - 1) * kPagePositions);
    if (oldest.tokens.empty()) kept_.erase(kept_.begin());
    if (n_free() > before) return true;  // not, if somebody else has the page too
  }
  return false;
}

// Forgets what comes after `n_tokens`, and the tokens that are in no page.
void SequenceCache::cut(Sequence& sequence, uint32_t n_tokens) {
  sequence.n_done = std::min(sequence.n_done, n_tokens);
  sequence.tokens.resize(sequence.n_done);
  const uint32_t n_pages = pages_for(sequence.n_done);
  for (size_t group = 0; group < sequence.pages.size(); ++group) {
    // Last page first: the free list is a stack, so the next taker finds them in order.
    std::vector<uint32_t>& pages = sequence.pages[group];
    for (; pages.size() > n_pages; pages.pop_back()) groups()[group].pages.release(pages.back());
  }
}

void SequenceCache::end(uint32_t slot, uint32_t n_kept) {
  Sequence sequence = store_.release(slot);
  cut(sequence, most_kept_ > 0 ? n_kept : 0);
  if (!sequence.tokens.empty()) keep(std::move(sequence));
}

void SequenceCache::discard(uint32_t slot) {
  Sequence sequence = store_.release(slot);
  cut(sequence, 0);
}

void SequenceCache::keep(Sequence&& sequence) {
  for (size_t i = 0; i < kept_.size(); ++i) {
    const size_t n = common_prefix(kept_[i].tokens, sequence.tokens);
    if (n == sequence.tokens.size()) {  // nothing new
      cut(sequence, 0);
      return touch(i);
    }
    if (n == kept_[i].tokens.size()) drop(i--);  // a part of the new one
  }
  if (kept_.size() == most_kept_) drop(0);
  kept_.push_back(std::move(sequence));
}

void SequenceCache::shorten(uint64_t id, uint32_t n_kept) {
  const auto found = std::ranges::find(kept_, id, &Sequence::id);
  if (found == kept_.end()) return;
  cut(*found, n_kept);
  if (found->tokens.empty()) kept_.erase(found);
}

void SequenceCache::drop(size_t kept_index) {
  cut(kept_[kept_index], 0);
  kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(kept_index));
}

void SequenceCache::touch(size_t kept_index) {
  std::rotate(kept_.begin() + static_cast<ptrdiff_t>(kept_index),
              kept_.begin() + static_cast<ptrdiff_t>(kept_index) + 1, kept_.end());
}

}  // namespace akunu
