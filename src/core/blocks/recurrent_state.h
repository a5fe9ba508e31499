// What the cache keeps of a text for a recurrent layer, however long the text is: the states of its heads, which every
// row changes, as they were after the last kKept positions, so that the last row may run again; and the last inputs of the
// convolution in front.
#pragma once

#include <cstdint>

namespace akunu {

struct RecurrentState {
  static constexpr uint32_t kKept = 2;
  uint32_t n_heads = 0;
  uint32_t head_size = 0;  // numbers of the state of each
  uint32_t convolved = 0;  // numbers of a row that are convolved
  uint32_t width = 0;      // rows that the convolution sees, its own included

  uint32_t kept_inputs() const { return width - 1 + kKept - 1; }  // positions
};

}  // namespace akunu
