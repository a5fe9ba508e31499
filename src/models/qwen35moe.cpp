// Qwen3.5 (2026) with experts, and one more for all rows, with a router of its own.
#include "files/huggingface/config.h"
#include "files/huggingface/delta_rule_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::qwen35moe {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = qwen35::describe(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

namespace {

constexpr std::string_view kMixerWords[]{"linear_attention"};
constexpr std::array kDirectories{
    HfModel{.model_type = "qwen3_5_moe_text",
            .names = &hf::kCentredNormsNames,
            .n_heads = 16,
            .n_kv_heads = 2,
            .head_dim = 256,
            .vocab_size = 248320,
            .context_length = 32768,
            .rotating_part = 0.25f,
            .ffn_key = "moe_intermediate_size",
            .experts = HfExperts{.usual_n = 256,
                                 .usual_n_chosen = 8,
                                 .usual_dim = 512,
                                 .shared_dim = "shared_expert_intermediate_size",
                                 .usual_shared_dim = 512},
            .stacks = StackOrder::either,
            .read_layers = [](ConfigObject& config,
                              HfConfig& result) { read_hf_delta_rules(config, result.model); },
            .mixer_words = kMixerWords,
            .without_effect = "mtp_"}};
constexpr std::array kWithImages{ImageModel{"qwen3_5_moe", "qwen3_5_moe_text"}};

}  // namespace

constinit const Family family{
    .architecture = "qwen35moe",
    .titles = {.recurrent = "Qwen3.5 with experts"},
    .describe = describe,
    .traits = {.experts = true, .recurs = true, .tiles_values = true, .predicts = true},
    .gguf_names = &gguf::kDeltaNames,
    .directories = kDirectories,
    .with_images = kWithImages,
};

}  // namespace akunu::models::qwen35moe
