// Functions that are applied to each number.
#pragma once

#include <cstdint>

namespace akunu {

enum class Activation : uint8_t {
  silu,
  gelu_tanh,
  gelu,
  tanh,
  none,
  sigmoid,
  relu_squared,
  quick_gelu
};

}  // namespace akunu
