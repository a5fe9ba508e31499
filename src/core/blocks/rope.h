// Rotary positions (Su et al., 2021): pairs of numbers of Q and K rotate by angles that grow with the position.
#pragma once

#include <array>
#include <cstdint>

namespace akunu {

enum class RopeStyle : uint8_t {
  none,
  interleaved,  // dimension 2i rotates with 2i + 1
  halves,       // dimension i rotates with i + dim / 2
};

// Which axis of a position a pair takes: time 0, y 1, x 2; see RopeAnglesParams::axes. As it stands here, all take time.
struct RopeAxes {
  static constexpr uint32_t kMostPairs = 128;
  std::array<uint32_t, kMostPairs / 16> words = {};

  void set(uint32_t pair, uint32_t axis) { words[pair / 16] |= axis << 2 * (pair % 16); }
  bool operator==(const RopeAxes&) const = default;
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
  // Pairs after which the frequencies begin again, as they do for each axis of an image; 0: they do not.
  uint32_t n_pairs_of_axis = 0;
  RopeAxes axes = {};

  uint32_t n_frequencies() const { return n_pairs_of_axis != 0 ? n_pairs_of_axis : dim / 2; }
};

}  // namespace akunu
