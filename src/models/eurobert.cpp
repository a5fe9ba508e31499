// Llama's layers as an encoder (Boizard et al., 2025).
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::eurobert {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  make_encoder(arch, Pooling::mean, config);
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "eurobert"}};

}  // namespace

constinit const Family family{
    .architecture = "eurobert",
    .titles = {.encoder = "EuroBERT"},
    .describe = describe,
    .traits = {.encoder = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::eurobert
