// StableLM (Stability AI, 2023): layer norms with biases, rotary positions in a quarter of a head, SiLU in the gate. Biases
// of Q, K and V are seen from the tensors.
#include "files/huggingface/config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::stablelm {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  arch.norm = NormKind::layer;
  return arch;
}

namespace {

// The largest of the second generation (12B) has both.
void refuse_more(ConfigObject& config, HfConfig&) {
  for (const char* key : {"use_parallel_residual", "qk_layernorm"})
    if (config.flag(key).value_or(false))
      config.refuse_support(key, "it is not supported for stablelm");
}

constexpr std::array kDirectories{HfModel{.model_type = "stablelm",
                                          .n_heads = 32,
                                          .n_kv_heads = 32,
                                          .vocab_size = 50304,
                                          .context_length = 4096,
                                          .rotating_part = 0.25f,
                                          .norm_epsilon = 1e-5f,
                                          .epsilon_key = "layer_norm_eps",
                                          .read_layers = refuse_more,
                                          .without_effect = "use_qkv_bias"}};

}  // namespace

constinit const Family family{
    .architecture = "stablelm",
    .titles = {.dense = "StableLM"},
    .describe = describe,
    .traits = {.layer_norm = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::stablelm
