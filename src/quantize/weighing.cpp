#include "quantize/weighing.h"

#include <cmath>

#include "quantize/lanes.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

void weigh(std::span<const float> x, std::span<const float> importance, std::span<float> w) {
  Lanes squares = all(0.0f), most_lanes = squares;
  for (size_t i = 0; i < x.size(); i += kLanes) squares += load(&x[i]) * load(&x[i]);
  for (size_t i = 0; i < importance.size(); i += kLanes)
    most_lanes = larger(most_lanes, load(&importance[i]));
  const float mean = sum(squares) / static_cast<float>(x.size()), root = std::sqrt(mean);
  const float highest = most(most_lanes);
  if (root == 0.0f) {
    for (size_t i = 0; i < x.size(); i += kLanes) store(&w[i], all(1.0f));
  } else if (highest > 0.0f) {
    // Never nothing at all: a group whose inputs were never seen still gets a scale.
    const float to_one = 1.0f / highest, floor = 1e-6f * root;
    for (size_t i = 0; i < x.size(); ++i)
      w[i] = importance[i] * to_one * std::sqrt(mean + x[i] * x[i]) + floor;
  } else {
    for (size_t i = 0; i < x.size(); i += kLanes) store(&w[i], magnitude(load(&x[i])) + root);
  }
}

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
