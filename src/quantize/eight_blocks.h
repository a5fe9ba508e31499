// The search of search.h for eight blocks of 32 weights side by side, a lane each: no sum goes across
// lanes, so a scale that is tried costs what its sums cost. A block's bytes do not depend on what lies
// in the other lanes.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "quantize/lanes.h"
#include "quantize/search.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

constexpr size_t kBlockSize = 32;

// Lane b of number i is weight i of block b.
struct EightBlocks {
  std::array<Lanes, kBlockSize> x;
  std::array<Lanes, kBlockSize> w;  // how much it counts
};

// 1 / scale, 0 where there is none.
inline Lanes inverse_of(const Lanes& scale) {
  const Lanes is_there = choose(magnitude(scale), all(0.0f), all(1.0f), all(0.0f));
  return is_there / choose(magnitude(scale), all(0.0f), scale, all(1.0f));
}

// The blocks of `x`, eight or fewer; lanes without one are as the last. `importance` as `weigh` has it.
EightBlocks read_blocks(std::span<const float> x, std::span<const float> importance);

// As best_scale and best_line of search.h, without the limit on the minimum.
Lanes best_scales(const EightBlocks& blocks, Codes codes, Trials trials);
struct Lines {
  Lanes scale;
  Lanes minimum;
};
Lines best_lines(const EightBlocks& blocks, float levels, Trials trials);

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
