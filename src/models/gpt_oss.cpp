// gpt-oss (2025): windows in every second layer, a sink for each head, experts with biases whose
// activation is clamped.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::gpt_oss {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  give_windows(arch, config, 2, 128);
  give_experts(arch, config, Scoring::chosen, false);
  for (LayerDescriptor& layer : arch.layers) {
    if (!layer.experts) continue;
    layer.experts->limit = config.experts.limit != 0 ? config.experts.limit : 7.0f;
    layer.experts->alpha = config.experts.alpha != 0 ? config.experts.alpha : 1.702f;
    require_positive(layer.experts->limit, "limit of the experts' activation");
    require_positive(layer.experts->alpha, "alpha of the experts' activation");
  }
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "gpt_oss",
                                          .names = &hf::kGptOssNames,
                                          .head_dim = 64,
                                          .windows = HfWindows{.length = 128, .period = 2},
                                          .rope_theta = 150000,
                                          .norm_epsilon = 1e-5f,
                                          .stacks = StackOrder::columns_first}};

}  // namespace

constinit const Family family{
    .architecture = "gpt-oss",
    .titles = {.with_experts = "gpt-oss"},
    .describe = describe,
    .traits = {.windows = true, .experts = true},
    .gguf_names = &gguf::kSeedNames,
    .written = {.without_truncation = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::gpt_oss
