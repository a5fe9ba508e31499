// BERT's frame with rotary positions and a gated feed-forward network (Nussbaum et al., 2024).
#include "models/common/layers.h"
#include "models/families.h"
#include "weight/hf_config.h"
#include "weight/hf_encoder_config.h"

namespace akunu::models::nomic_bert {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  make_encoder(arch, Pooling::mean, config);
  arch.norm = NormKind::layer;
  arch.norm_place = NormPlace::after_sum;
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "nomic_bert", .names = &hf::kNomicBertNames, .read = read_hf_nomic_bert}};

}  // namespace

constinit const Family family{
    .architecture = "nomic-bert",
    .titles = {.encoder = "nomic-bert"},
    .describe = describe,
    .traits = {.encoder = true, .layer_norm = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::nomic_bert
