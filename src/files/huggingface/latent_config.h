// What a config.json says of multi-head latent attention.
#pragma once

#include <cstdint>

#include "core/model_config.h"
#include "files/huggingface/config_object.h"

namespace akunu {

// What transformers takes where the file does not say.
struct HfLatents {
  uint32_t rank = 512;
  uint32_t query_rank = 1536;  // 0: queries are not compressed
  uint32_t plain_dim = 128;    // numbers of a head that do not rotate
  uint32_t rotated_dim = 64;   // and those that do
  uint32_t value_dim = 128;    // 0: hidden_size / num_attention_heads
};

// Reads ranks and lengths into `model`, and returns the length of a head.
uint32_t read_hf_latents(ConfigObject& config, const HfLatents& usual, uint32_t n_heads,
                         ModelConfig& model);

}  // namespace akunu
