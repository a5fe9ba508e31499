// Gemma 3's layers as an encoder: a window is half before a row and half behind it.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::gemma_embedding {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = gemma3::describe(config);
  make_encoder(arch, Pooling::mean, config);
  for (Attention& attention : attention_of(arch)) attention.window /= 2;
  return arch;
}

constinit const Family family{
    .architecture = "gemma-embedding",
    .titles = {.encoder = "Gemma-Embedding"},
    .describe = describe,
    .traits = {.windows = true, .attention_scale = true, .encoder = true},
};

}  // namespace akunu::models::gemma_embedding
