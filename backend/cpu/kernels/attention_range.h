// Positions [begin, end) that a row of an attention sees.
#pragma once

#include "cpu/kernel.h"

namespace akunu::cpu {

struct Range {
  uint32_t begin, end;
};

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
  const uint32_t end = row.kv_length;
  return {window != 0 && end > window ? end - window : 0, end};
}

}  // namespace akunu::cpu
