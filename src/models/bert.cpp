// BERT (Devlin et al., 2018): learned positions, token types, norms behind each sum.
#include "files/huggingface/config.h"
#include "files/huggingface/encoder_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::bert {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = nomic_bert::describe(config);
  rotate_as(arch, RopeStyle::none);
  give_plain_networks(arch, Activation::gelu);
  return arch;
}

namespace {

// Of directories: behind "bert." or nothing; RoBERTa's are the same.
constexpr std::array kBertModel{
    same("embeddings.word_embeddings", "token_embedding"),
    same("embeddings.position_embeddings", "position_embedding"),
    same("embeddings.token_type_embeddings", "token_types"),
    same("embeddings.LayerNorm", "embedding_norm"),
};
constexpr std::array kBertLayer{
    same("attention.self.query", "attention.q"),
    same("attention.self.key", "attention.k"),
    same("attention.self.value", "attention.v"),
    same("attention.output.dense", "attention.output"),
    same("attention.output.LayerNorm", "attention_output_norm"),
    same("intermediate.dense", "ffn.up"),
    same("output.dense", "ffn.down"),
    same("output.LayerNorm", "layer_output_norm"),
};
constexpr NameRules kRules{"encoder.layer.", kBertModel, kBertLayer, hf::kBertLeftOut};
constexpr auto kClassifierModel = joined(kBertModel, hf::kHead);
constexpr NameRules kClassifierRules{"encoder.layer.", kClassifierModel, kBertLayer,
                                     hf::kBertClassifierLeftOut};
constexpr HfNames kNames{.rules = &kRules,
                         .embedding = "embeddings.word_embeddings.weight",
                         .of_classifier = &kClassifierRules};

constexpr std::array kDirectories{
    HfModel{.model_type = "bert", .names = &kNames, .read = read_hf_bert},
    HfModel{.model_type = "roberta", .names = &kNames, .read = read_hf_bert},
    HfModel{.model_type = "xlm-roberta", .names = &kNames, .read = read_hf_bert},
    HfModel{.model_type = "camembert", .names = &kNames, .read = read_hf_bert}};

}  // namespace

constinit const Family family{
    .architecture = "bert",
    .titles = {.encoder = "BERT, RoBERTa, XLM-R, CamemBERT"},
    .describe = describe,
    .traits = {.encoder = true, .layer_norm = true, .rotates = false},
    .directories = kDirectories,
};

}  // namespace akunu::models::bert
