// EXAONE 4 (2025): OLMo 2's frame with norms per head; the larger models have windows in three of
// four layers.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::exaone4 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  norm_behind_only(arch);
  give_windows(arch, config, 4, 0);
  rotate_windows_only(arch, config);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "exaone4",
            .names = &hf::kNormsBehindNames,
            .windows = HfWindows{.length = 4096, .period = 4, .rotate_alone = true},
            .norm_epsilon = 1e-5f}};

constexpr PreTokenizerName kPreTokenizers[]{{"exaone4", &cuts::kGpt2}};

}  // namespace

constinit const Family family{
    .architecture = "exaone4",
    .titles = {.dense = "EXAONE 4"},
    .describe = describe,
    .traits = {.windows = true},
    .written = {.rope_factors = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::exaone4
