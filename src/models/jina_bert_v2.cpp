// BERT's frame with ALiBi instead of positions, and GELU in the gate (Günther et al., 2023).
#include "models/families.h"

namespace akunu::models::jina_bert_v2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = nomic_bert::describe(config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.rope_style = RopeStyle::none;
    layer.activation = Activation::gelu;
    layer.alibi_bias = 8;
  }
  return arch;
}

namespace {

constexpr PreTokenizerName kPreTokenizers[]{{"jina-v2-es", &cuts::kGpt2},
                                            {"jina-v2-de", &cuts::kGpt2},
                                            {"jina-v1-en", &cuts::kRoberta},
                                            {"jina-v2-code", &cuts::kRoberta}};

}  // namespace

constinit const Family family{
    .architecture = "jina-bert-v2",
    .titles = {.encoder = "jina-bert-v2"},
    .describe = describe,
    .traits = {.encoder = true, .layer_norm = true, .rotates = false},
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::jina_bert_v2
