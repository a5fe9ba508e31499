// BERT's frame with rotary positions and a gated feed-forward network (Nussbaum et al., 2024).
#include "files/huggingface/config.h"
#include "files/huggingface/encoder_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::nomic_bert {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  make_encoder(arch, Pooling::mean, config);
  arch.norm = NormKind::layer;
  arch.norm_place = NormPlace::after_sum;
  return arch;
}

namespace {

// Of directories, as its authors' code has it; transformers writes the same.
constexpr std::array kNomicModel{
    same("embeddings.word_embeddings", "token_embedding"),
    same("embeddings.token_type_embeddings", "token_types"),
    same("emb_ln", "embedding_norm"),
};
constexpr std::array kNomicLayer{
    NameRule{"attn.Wqkv",
             {{{"attention.q", PieceRows::query},
               {"attention.k", PieceRows::key_value},
               {"attention.v", PieceRows::key_value}}}},
    same("attn.out_proj", "attention.output"),
    same("norm1", "attention_output_norm"),
    same("mlp.fc11", "ffn.up"),
    same("mlp.fc12", "ffn.gate"),
    same("mlp.fc2", "ffn.down"),
    same("norm2", "layer_output_norm"),
};
constexpr NameRules kRules{"encoder.layers.", kNomicModel, kNomicLayer, hf::kBertLeftOut};
constexpr HfNames kNames{.rules = &kRules, .embedding = "embeddings.word_embeddings.weight"};

constexpr std::array kDirectories{
    HfModel{.model_type = "nomic_bert", .names = &kNames, .read = read_hf_nomic_bert}};

}  // namespace

constinit const Family family{
    .architecture = "nomic-bert",
    .titles = {.encoder = "nomic-bert"},
    .describe = describe,
    .traits = {.encoder = true, .layer_norm = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::nomic_bert
