// Qwen3-Next (2025): Qwen3.5 with experts by other names, its b and a together by key head.
#include "files/huggingface/config.h"
#include "files/huggingface/delta_rule_config.h"
#include "models/families.h"

namespace akunu::models::qwen3next {

ArchDescriptor describe(const ModelConfig& config) { return qwen35moe::describe(config); }

namespace {

constexpr std::string_view kMixerWords[]{"linear_attention"};
constexpr std::array kDirectories{
    HfModel{.model_type = "qwen3_next",
            .names = &hf::kCentredNormsNames,
            .n_heads = 16,
            .n_kv_heads = 2,
            .head_dim = 256,
            .vocab_size = 151936,
            .context_length = 32768,
            .rotating_part = 0.25f,
            .experts = HfExperts{.usual_n = 512,
                                 .usual_n_chosen = 10,
                                 .usual_dim = 512,
                                 .shared_dim = "shared_expert_intermediate_size",
                                 .usual_shared_dim = 512},
            .read_layers = [](ConfigObject& config,
                              HfConfig& result) { read_hf_delta_rules(config, result.model); },
            .mixer_words = kMixerWords,
            .without_effect = "mtp_"}};

}  // namespace

constinit const Family family{
    .architecture = "qwen3next",
    .titles = {.recurrent = "Qwen3-Next"},
    .describe = describe,
    .traits = {.experts = true, .recurs = true, .predicts = true},
    .gguf_names = &gguf::kDeltaNames,
    .written = {.b_and_a_by_key_head = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::qwen3next
