// Byte-pair encoding: neighbours that have a merge become one token, the best merge first, until none
// is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

namespace akunu {

// What two neighbours become, and how soon: smaller comes first.
struct Merge {
  std::tuple<double, uint32_t, uint32_t> order;
  uint32_t token;
};

// Replaces `tokens` by what is left of them. `find(left, right)` returns a std::optional<Merge>. Of merges
// of equal order, the leftmost comes first.
template <class Find>
void merge_neighbours(std::vector<uint32_t>& tokens, const Find& find) {
  struct Symbol {
    uint32_t token;
    size_t before, next;
    bool is_gone = false;
  };
  struct Candidate {
    Merge merge;
    size_t left;
    bool operator<(const Candidate& other) const {  // the best is on top
      return std::tie(merge.order, left) > std::tie(other.merge.order, other.left);
    }
  };
  const size_t n = tokens.size();
  if (n < 2) return;
  std::vector<Symbol> symbols(n);
  for (size_t i = 0; i < n; ++i) symbols[i] = {tokens[i], i - 1, i + 1};
  std::priority_queue<Candidate> candidates;
  const auto look_at = [&](size_t left) {
    const size_t right = symbols[left].next;
    if (right >= n) return;
    if (const auto merge = find(symbols[left].token, symbols[right].token))
      candidates.push({*merge, left});
  };
  for (size_t i = 0; i + 1 < n; ++i) look_at(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbols[best.left];
    if (left.is_gone || left.next >= n) continue;
    Symbol& right = symbols[left.next];
    // Either of the two may have become another token meanwhile.
    const auto merge = find(left.token, right.token);
    if (!merge || merge->token != best.merge.token) continue;
    right.is_gone = true;
    left.token = best.merge.token;
    left.next = right.next;
    if (left.next < n) symbols[left.next].before = best.left;
    look_at(best.left);
    if (left.before < n) look_at(left.before);
  }
  tokens.clear();
  for (const Symbol& symbol : symbols)
    if (!symbol.is_gone) tokens.push_back(symbol.token);
}

}  // namespace akunu
