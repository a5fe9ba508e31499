// How a config.json wants rotary positions scaled: `rope_scaling`, or `rope_parameters` in newer ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weight/config_object.h"

namespace akunu {

struct RopeScaling {
  float linear_factor = 1;
  float attention_factor = 1;   // of Q and of K, where they rotate
  std::vector<float> divisors;  // of the frequencies, [rope_dim / 2]; empty: all 1
  std::vector<std::string> notes;
};

// What the scaling is computed from.
struct RopeBasis {
  float theta = 0;
  uint32_t rope_dim = 0;
  uint32_t context_length = 0;  // the model's own, `max_position_embeddings`
};

// Throws ModelFormatError for numbers that are missing or make no sense, and UnsupportedModelError for
// a kind of scaling that akunu does not have. Reads linear, dynamic, llama3 and yarn.
RopeScaling read_rope_scaling(ConfigObject& scaling, const RopeBasis& basis);

}  // namespace akunu
