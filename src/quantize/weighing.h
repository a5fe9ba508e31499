// How much each weight of a block counts in the search for its scale.
#pragma once

#include <span>

#include "quantize/level.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

// With an importance matrix: its numbers, each times the square root of what the weight's own square
// and the block's mean square are together, since outputs depend more on large weights than the
// mean squares of inputs alone say. Without one: the magnitude plus the block's root mean square.
// Of an importance only the ratios within `x` count, so that no sum over a group overflows.
void weigh(std::span<const float> x, std::span<const float> importance, std::span<float> w);

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
