// Rotary positions (Su et al., 2021): pairs of numbers of Q and K rotate by angles that grow with the position.
#pragma once

#include <cstdint>

namespace akunu {

enum class RopeStyle : uint8_t {
  none,
  interleaved,  // dimension 2i rotates with 2i + 1
  halves,       // dimension i rotates with i + dim / 2
};

struct Rope {
  RopeStyle style = RopeStyle::none;
  uint32_t dim =
      0;  // leading dimensions of a head that rotate; latent attention rotates its last ones
  float theta = 0;
  float linear_factor = 1;   // positions are divided by it
  float dynamic_factor = 1;  // of dynamic NTK, where a context goes beyond the model's
  float factor = 1;          // what rotates is multiplied by it, of Q and of K
  // Whether the model's tensors of frequency factors, and its factor on Q and K, hold here.
  bool has_model_factors = true;
  // Q is multiplied by 1 + query_growth * log(1 + position / query_growth_length); 0: it is not.
  float query_growth = 0;
  uint32_t query_growth_length = 0;
};

}  // namespace akunu
