// StarCoder2 (2024): layer norms, a feed-forward network without a gate, biases everywhere.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::starcoder2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  arch.norm = NormKind::layer;
  give_plain_networks(arch, Activation::gelu_tanh);
  return arch;
}

namespace {

// Of directories.
constexpr std::array kOwnLayer{
    same("mlp.c_fc", "ffn.up"),
    same("mlp.c_proj", "ffn.down"),
};

constexpr std::array kDirectories{HfModel{.model_type = "starcoder2",
                                          .names = &hf::UsualAnd<hf::kNoNames, kOwnLayer>::kNames,
                                          .windows = HfWindows{},
                                          .norm_epsilon = 1e-5f,
                                          .epsilon_key = "norm_epsilon",
                                          .activation = "gelu_pytorch_tanh"}};

}  // namespace

constinit const Family family{
    .architecture = "starcoder2",
    .titles = {.dense = "StarCoder2"},
    .describe = describe,
    .traits = {.windows = true, .layer_norm = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::starcoder2
