// GLM-4 (2025): norms before and behind, neighbours rotate.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::glm4 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  arch.post_norms = true;
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{
        .model_type = "glm4", .head_dim = 128, .rotating_part = 0.5f, .norm_epsilon = 1.5625e-7f},
    HfModel{.model_type = "glm4v_text", .norm_epsilon = 1e-5f}};
constexpr std::array kWithImages{ImageModel{"glm46v", "glm4v_text"},
                                 ImageModel{"glm4v", "glm4v_text"}};
constexpr std::string_view kJoined[]{"ffn_up"};

constexpr PreTokenizerName kPreTokenizers[]{{"glm4", &cuts::kDbrx}, {"chatglm-bpe", &cuts::kDbrx}};

}  // namespace

constinit const Family family{
    .architecture = "glm4",
    .titles = {.dense = "GLM-4"},
    .describe = describe,
    .traits = {.interleaves = true},
    .written = {.joined = kJoined},
    .directories = kDirectories,
    .with_images = kWithImages,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::glm4
