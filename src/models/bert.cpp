// BERT (Devlin et al., 2018): learned positions, token types, norms behind each sum.
#include "models/families.h"
#include "weight/hf_config.h"
#include "weight/hf_encoder_config.h"

namespace akunu::models::bert {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = nomic_bert::describe(config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.rope_style = RopeStyle::none;
    layer.feed_forward = FeedForward::plain;
    layer.activation = Activation::gelu;
  }
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "bert", .names = &hf::kBertNames, .read = read_hf_bert},
    HfModel{.model_type = "roberta", .names = &hf::kBertNames, .read = read_hf_bert},
    HfModel{.model_type = "xlm-roberta", .names = &hf::kBertNames, .read = read_hf_bert},
    HfModel{.model_type = "camembert", .names = &hf::kBertNames, .read = read_hf_bert}};

}  // namespace

constinit const Family family{
    .architecture = "bert",
    .titles = {.encoder = "BERT, RoBERTa, XLM-R, CamemBERT"},
    .describe = describe,
    .traits = {.encoder = true, .layer_norm = true, .rotates = false},
    .directories = kDirectories,
};

}  // namespace akunu::models::bert
