// How a config.json wants rotary positions scaled: `rope_scaling`, or `rope_parameters` in newer ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/blocks/rope.h"
#include "files//huggingface/config_object.h"

namespace akunu {

// YaRN's numbers (Peng et al., 2023).
struct Yarn {
  double factor = 1;
  uint32_t original_context = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;  // whether the band between ends at whole pairs
};

struct RopeScaling {
  float linear_factor = 1;
  float attention_factor = 1;   // of Q and of K, where they rotate
  float scale_factor = 1;       // of attention's scale, of latent attention
  float dynamic_factor = 1;     // of the frequencies' base, in longer contexts; see ModelConfig
  float theta_factor = 1;       // of the frequencies' base, always (NTK with a fixed alpha)
  std::vector<float> divisors;  // of the frequencies, [rope_dim / 2]; empty: all 1
  std::vector<float> long_divisors;  // in contexts beyond original_context; empty: the same
  uint32_t original_context = 0;
  std::optional<Yarn> yarn;  // what the divisors are of, where it is that
};

// What the scaling is computed from.
struct RopeBasis {
  float theta = 0;
  uint32_t rope_dim = 0;
  uint32_t context_length = 0;    // the model's own, `max_position_embeddings`
  uint32_t original_context = 0;  // before it was stretched, where the model says it itself; else 0
  bool is_phi3 = false;           // whose old files say "su" and "yarn" and mean long-RoPE
  bool has_alpha = false;         // whose "dynamic" with an alpha is a larger base (Hunyuan)
};

// The divisors of the frequencies, and the factor on Q and K where nothing else is said.
std::vector<float> yarn_divisors(const Yarn& yarn, const RopeBasis& basis);
double yarn_attention_factor(const Yarn& yarn);
// 1 + 0.1 scale * log(factor), by which YaRN makes up for longer contexts.
double yarn_magnitude(double factor, double scale);

// `mrope_section` has the numbers of pairs that turn by time, by y and by x, one section after the other or, where
// `mrope_interleaved` says so, in turns (Qwen3-VL). Without the key, or where it does not fit, all turn by time: texts without
// images are the same then.
RopeAxes read_rope_axes(ConfigObject& scaling, uint32_t n_pairs);

// Throws ModelFormatError for numbers that are missing or make no sense, and UnsupportedModelError for
// a kind of scaling that akunu does not have. Reads linear, dynamic, llama3, yarn and longrope.
RopeScaling read_rope_scaling(ConfigObject& scaling, const RopeBasis& basis);

}  // namespace akunu
