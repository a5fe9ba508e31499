#include "cache/moved_positions.h"

#include <algorithm>

#include "core/rows.h"

namespace akunu {
namespace {

uint32_t first_position_seen(const GroupShape& group, uint32_t n) {
  const auto* window = std::get_if<WindowCache>(&group.kind);
  return window == nullptr || n < window->window ? 0 : n + 1 - window->window;
}

// A group's positions of a text, as they lie in SavedPositions: its pages from
// `first_entry` on.
struct SavedGroup {
  const GroupShape& shape;
  uint32_t first_entry;
  uint32_t n;        // positions of the text
  uint64_t n_bytes;  // before the group's own

  uint64_t end() const {
    uint64_t bytes = n_bytes;
    for (uint32_t entry = first_entry; entry < pages_for(n); ++entry)
      bytes += saved_page_bytes(shape, positions_in(entry, n));
    return bytes;
  }
  // Where position `position` of a head lies: of the keys of a layer, or of its
  // values.
  uint64_t offset(const LayerShape& layer, bool is_value, uint32_t head, uint32_t position) const {
    const uint32_t entry = position / kPagePositions;
    const uint64_t in_page = positions_in(entry, n);
    // Every page before this one is whole.
    uint64_t bytes = n_bytes + (entry - first_entry) * saved_page_bytes(shape, kPagePositions);
    for (const LayerShape& other : shape.layers) {
      if (other.layer == layer.layer) break;
      bytes += other.n_heads * in_page * (other.key_bytes + other.value_bytes);
    }
    if (is_value) bytes += layer.n_heads * in_page * layer.key_bytes;
    return bytes + (head * in_page + position % kPagePositions) * layer.position_bytes(is_value);
  }
};

// How many positions from this one on lie one behind the other, before and
// after the move.
uint32_t run_from(uint32_t position, const Moves& moves, uint32_t n) {
  const bool moves_too = position >= moves.first;
  const uint32_t was = position + (moves_too ? moves.by : 0);
  return std::min({kPagePositions - position % kPagePositions,
                   kPagePositions - was % kPagePositions,
                   (moves_too ? n : std::min(n, moves.first)) - position});
}

}  // namespace

std::optional<Moves> moves_between(std::span<const uint32_t> from, std::span<const uint32_t> to) {
  if (to.empty() || to.size() >= from.size()) return std::nullopt;
  const auto by = static_cast<uint32_t>(from.size() - to.size());
  const auto same = std::ranges::mismatch(from, to.first(to.size() - 1)).in2 - to.begin();
  const auto first = static_cast<uint32_t>(same);
  if (!std::ranges::equal(from.subspan(first + by), to.subspan(first))) return std::nullopt;
  return Moves{first, by};
}

std::optional<MovedPositions> move_positions(std::span<const GroupShape> groups,
                                             const SavedPositions& from, const Moves& moves,
                                             uint32_t n) {
  const uint32_t n_from = n + moves.by;
  MovedPositions moved{
      .saved = {}, .n = n, .first = moves.first, .by = moves.by, .n_exact = moves.first};
  // The first position of a page that need not be right: no row sees it.
  std::vector<uint32_t> first_right;
  for (size_t i = 0; i < groups.size(); ++i) {
    const uint32_t first_kept = groups[i].needed(n_from, n_from).first * kPagePositions;
    const auto is_there = [&](uint32_t position) {
      return position + (position < moves.first ? 0 : moves.by) >= first_kept;
    };
    const uint32_t seen = first_position_seen(groups[i], n);
    // Positions move by the same or by nothing, in order: where the first one
    // is there, all are.
    if (seen < n && !is_there(seen)) return std::nullopt;
    const uint32_t first_entry = groups[i].needed(n, n).first;
    uint32_t right = first_entry * kPagePositions;
    while (right < seen && !is_there(right)) ++right;
    if (right > first_entry * kPagePositions) moved.n_exact = 0;
    first_right.push_back(right);
    moved.saved.first_entries.push_back(first_entry);
  }
  moved.saved.bytes.resize(saved_bytes(groups, moved.saved.first_entries, n));
  uint64_t n_bytes_from = 0, n_bytes_to = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const SavedGroup old{groups[i], from.first_entries[i], n_from, n_bytes_from};
    const SavedGroup now{groups[i], moved.saved.first_entries[i], n, n_bytes_to};
    n_bytes_from = old.end();
    n_bytes_to = now.end();
    for (const LayerShape& layer : groups[i].layers)
      for (const bool is_value : {false, true}) {
        if (is_value && !layer.has_values()) continue;
        for (uint32_t head = 0; head < layer.n_heads; ++head)
          for (uint32_t position = first_right[i]; position < n;) {
            const uint32_t n_run = run_from(position, moves, n);
            const uint32_t was = position + (position < moves.first ? 0 : moves.by);
            std::copy_n(
                from.bytes.begin() + static_cast<ptrdiff_t>(old.offset(layer, is_value, head, was)),
                n_run * layer.position_bytes(is_value),
                moved.saved.bytes.begin() +
                    static_cast<ptrdiff_t>(now.offset(layer, is_value, head, position)));
            position += n_run;
          }
      }
  }
  return moved;
}

}  // namespace akunu
