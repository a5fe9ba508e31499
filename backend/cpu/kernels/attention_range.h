// What the attention kernels share: the positions that a row sees, and how a call is divided into slices.
#pragma once

#include "cpu/kernel.h"

namespace akunu::cpu {

struct Range {
  uint32_t begin, end;
};

static constexpr uint32_t round_up(uint32_t n, uint32_t step) {
  return (n + step - 1) / step * step;
}

static inline Range intersect(Range a, Range b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

// The shortest that holds both; one that is empty holds nothing.
static inline Range unite(Range a, Range b) {
  if (a.begin >= a.end) return b;
  if (b.begin >= b.end) return a;
  return {a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

static inline Range visible(const Row& row, uint32_t window) {
  const uint32_t own = row.position + 1;
  return {window != 0 && own > window ? own - window : 0, row.kv_length};
}

// What any of the rows sees.
static inline Range visible(const Row* rows, uint32_t n_rows, uint32_t window) {
  Range all = visible(rows[0], window);
  for (uint32_t r = 1; r < n_rows; ++r) all = unite(all, visible(rows[r], window));
  return all;
}

// The part of a range of positions in the page that begins with position `page`, counted from there.
static inline Range part_of_page(Range range, uint32_t page) {
  const Range part = intersect(range, {page, page + kPagePositions});
  return part.begin < part.end ? Range{part.begin - page, part.end - page} : Range{0, 0};
}
static inline Range seen_of_page(const Row& row, uint32_t window, uint32_t page) {
  return part_of_page(visible(row, window), page);
}

// The fewest kv heads whose output, `head` numbers each, is whole groups of the activation kind; all of them
// where there is no such number.
static inline uint32_t heads_of_whole_groups(uint32_t n_kv_heads, uint64_t head, uint32_t group) {
  uint32_t n = 1;
  while (n < n_kv_heads && n * head % group != 0) ++n;
  return n;
}

// Slices: up to `block_rows` rows of a span x one of `units` parts of the kv heads; a unit's blocks
// follow each other, alternately from the span's first and from its last one: later rows see more
// positions, and so any two neighbours together have about the same work.
static inline uint64_t blocks_of(const Span& span, uint32_t block_rows) {
  return (uint64_t{span.n_rows} + block_rows - 1) / block_rows;
}
static inline uint64_t attention_slices(const Call& call, uint32_t block_rows, uint32_t units) {
  uint64_t blocks = 0;
  for (uint32_t s = 0; s < call.n_spans; ++s)
    blocks += blocks_of(call.spans[call.first_span + s], block_rows);
  return blocks * units;
}
// Calls use(first row, number of rows, unit) for slices [begin, end).
template <class Isa, class Use>
static inline void for_each_slice(const Call& call, uint32_t block_rows, uint32_t units,
                                  uint64_t begin, uint64_t end, const Use& use) {
  uint64_t first = 0;  // slice of the span at hand
  for (uint32_t s = 0; s < call.n_spans && first < end; ++s) {
    const Span& span = call.spans[call.first_span + s];
    const uint64_t blocks = blocks_of(span, block_rows), n = blocks * units;
    for (uint64_t i = begin > first ? begin - first : 0; i < n && first + i < end; ++i) {
      const uint64_t place = i % blocks;
      const uint64_t block = place % 2 == 0 ? place / 2 : blocks - 1 - place / 2;
      const uint32_t offset = static_cast<uint32_t>(block) * block_rows;
      const uint32_t left = span.n_rows - offset;
      use(span.first_row + offset, left < block_rows ? left : block_rows,
          static_cast<uint32_t>(i / blocks));
    }
    first += n;
  }
}

}  // namespace akunu::cpu
