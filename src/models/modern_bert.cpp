// ModernBERT (Warner et al., 2024): norms before the parts of a layer, rotary positions, GELU in the
// gate, and a window in two of three layers, whose positions turn faster.
#include "files/huggingface/config.h"
#include "files/huggingface/encoder_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::modern_bert {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  make_encoder(arch, Pooling::first, config);
  arch.norm = NormKind::layer;
  arch.head_activation = Activation::gelu;
  give_activation(arch, Activation::gelu);
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].windowed.value_or(i % 3 != 0)) continue;
    Attention& attention = *arch.layers[i].attention();
    attention.window = (config.window != 0 ? config.window : 128) / 2;
    if (config.rope_theta_windowed != 0) attention.rope.theta = config.rope_theta_windowed;
  }
  return arch;
}

namespace {

constexpr std::array kModernBertModel{
    same("embeddings.tok_embeddings", "token_embedding"),
    same("embeddings.norm", "embedding_norm"),
    same("final_norm", "output_norm"),
};
constexpr std::array kModernBertLayer{
    NameRule{"attn.Wqkv",
             {{{"attention.q", PieceRows::query},
               {"attention.k", PieceRows::key_value},
               {"attention.v", PieceRows::key_value}}}},
    same("attn.Wo", "attention.output"),
    same("attn_norm", "attention_norm"),
    NameRule{"mlp.Wi", {{{"ffn.gate", PieceRows::ffn}, {"ffn.up", PieceRows::ffn}}}},
    same("mlp.Wo", "ffn.down"),
    same("mlp_norm", "ffn_norm"),
};
constexpr std::array kModernBertLeftOut{
    LeftOut{"head.*", hf::kGuesses},
    LeftOut{"decoder.*", hf::kGuesses},
};
constexpr NameRules kRules{"layers.", kModernBertModel, kModernBertLayer, kModernBertLeftOut};
constexpr auto kClassifierModel = joined(kModernBertModel, hf::kHead);
constexpr NameRules kClassifierRules{"layers.", kClassifierModel, kModernBertLayer,
                                     hf::kBertClassifierLeftOut};
constexpr HfNames kNames{.rules = &kRules,
                         .embedding = "embeddings.tok_embeddings.weight",
                         .of_classifier = &kClassifierRules};

constexpr std::array kDirectories{HfModel{
    .model_type = "modernbert", .names = &kNames, .n_layers = 22, .read = read_hf_modern_bert}};

constexpr PreTokenizerName kPreTokenizers[]{{"modern-bert", &cuts::kGpt2}};

}  // namespace

constinit const Family family{
    .architecture = "modern-bert",
    .titles = {.encoder = "ModernBERT"},
    .describe = describe,
    .traits = {.windows = true, .encoder = true, .layer_norm = true, .full_layer_first = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::modern_bert
