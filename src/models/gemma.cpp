// Gemma (2024): larger embeddings, GELU in the gate. Its norms multiply by 1 + w; whoever makes the
// file adds the 1.
#include <cmath>

#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::gemma {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  arch.embedding_scale = std::sqrt(static_cast<float>(config.dim));
  give_activation(arch, Activation::gelu_tanh);
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "gemma",
                                          .names = &hf::kGemmaNames,
                                          .head_dim = 256,
                                          .activation = "gelu_pytorch_tanh",
                                          .means_gelu_tanh = true}};

}  // namespace

constinit const Family family{
    .architecture = "gemma",
    .titles = {.dense = "Gemma"},
    .describe = describe,
    .directories = kDirectories,
};

}  // namespace akunu::models::gemma
