// BERT's frame with ALiBi instead of positions, and GELU in the gate (Günther et al., 2023).
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::jina_bert_v2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = nomic_bert::describe(config);
  rotate_as(arch, RopeStyle::none);
  for (Attention& attention : attention_of(arch)) attention.alibi_bias = 8;
  give_activation(arch, Activation::gelu);
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
