// How many steps of rows that generate a submission may have: their tokens reach readers together, and whoever comes in
// between waits for them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/kinds.h"

namespace akunu {

class StepPace {
 public:
  // A step of so many rows took so long.
  void took(uint32_t n_rows, double seconds) {
    seconds_ = n_rows == n_rows_ ? (seconds_ + seconds) / 2 : seconds;
    n_rows_ = n_rows;
  }
  // Steps that take at most `seconds` together, 1 to `most`. Until a step was measured, `most` of few rows. More rows than
  // were measured are taken to cost in proportion.
  uint32_t steps(uint32_t n_rows, double seconds, uint32_t most) const {
    const double rows = n_rows_ == 0 ? kMaxFewRows : n_rows_;
    const double factor = std::max(1.0, n_rows / rows);
    const double at_once = n_rows_ == 0 ? most : seconds / std::max(seconds_, 1e-9);
    return static_cast<uint32_t>(std::clamp(at_once / factor, 1.0, static_cast<double>(most)));
  }

 private:
  uint32_t n_rows_ = 0;  // of the last step; 0: none was measured
  double seconds_ = 0;
};

}  // namespace akunu
