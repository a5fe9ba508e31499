// Keys and values of a text whose oldest tokens, behind what it begins with,
// are dropped: those that stay are where they were, or move down, and their
// keys turn to their new positions (kv_rotate). The values stay as they were,
// and so they remember what was dropped: such positions serve this text alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "cache/groups.h"
#include "cache/saved_positions.h"

namespace akunu {

struct MovedPositions {
  // All positions of the shortened text; keys from `first` on are still turned
  // to where they were.
  SavedPositions saved;
  uint32_t n = 0;
  uint32_t first = 0;    // the first that moved
  uint32_t by = 0;       // how far down
  uint32_t n_exact = 0;  // so many positions have the bits of a text that reads these tokens
};

// Which positions move where a text of `from` tokens becomes one of `to`, whose
// last token is yet to be read: `first` and `by`. Nothing where `to` is not
// `from` without a run of its tokens.
struct Moves {
  uint32_t first = 0, by = 0;
};
std::optional<Moves> moves_between(std::span<const uint32_t> from, std::span<const uint32_t> to);

// The first n positions of the shortened text, out of those of a text of n +
// moves.by. Nothing where the window of a layer would see positions that the
// longer text had left behind. That depends on these numbers alone, and not on
// what happens to be in the cache still.
std::optional<MovedPositions> move_positions(std::span<const GroupShape> groups,
                                             const SavedPositions& from, const Moves& moves,
                                             uint32_t n);

}  // namespace akunu
