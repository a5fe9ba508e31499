// Qwen3 (2025): norms per head of Q and K.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::qwen3 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  give_head_norms(arch, HeadNorms::each);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "qwen3",
            .head_dim = 128,
            .windows = HfWindows{.length = 4096, .first = 28, .asked = true}},
    HfModel{.model_type = "qwen3_vl_text", .head_dim = 128, .rope_theta = 500000}};
constexpr std::array kWithImages{ImageModel{"qwen3_vl", "qwen3_vl_text"}};

}  // namespace

constinit const Family family{
    .architecture = "qwen3",
    .titles = {.dense = "Qwen3"},
    .describe = describe,
    .traits = {.windows = true},
    .directories = kDirectories,
    .with_images = kWithImages,
};

}  // namespace akunu::models::qwen3
