// Hunyuan (2025): norms per head of Q and K behind their rotary positions.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::hunyuan_dense {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = qwen3::describe(config);
  for (Attention& attention : attention_of(arch)) attention.norms_behind_rope = true;
  return arch;
}

namespace {

constexpr std::string_view kOwnKeys[]{"use_qk_norm"};
constexpr std::array kDirectories{HfModel{.model_type = "hunyuan_v1_dense",
                                          .norm_epsilon = 1e-5f,
                                          .has_alpha = true,
                                          .own_keys = kOwnKeys}};

constexpr PreTokenizerName kPreTokenizers[]{{"hunyuan-dense", &cuts::kDeepseek3}};

}  // namespace

constinit const Family family{
    .architecture = "hunyuan-dense",
    .titles = {.dense = "Hunyuan"},
    .describe = describe,
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::hunyuan_dense
