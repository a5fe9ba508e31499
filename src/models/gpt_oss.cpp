// gpt-oss (2025): windows in every second layer, a sink for each head, experts with biases whose
// activation is clamped.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::gpt_oss {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  give_windows(arch, config, 2, 128);
  give_experts(arch, config, Scoring::chosen, false);
  for (FeedForward& network : networks_of(arch)) {
    if (!network.experts) continue;
    network.experts->limit = config.experts.limit != 0 ? config.experts.limit : 7.0f;
    network.experts->alpha = config.experts.alpha != 0 ? config.experts.alpha : 1.702f;
    require_positive(network.experts->limit, "limit of the experts' activation");
    require_positive(network.experts->alpha, "alpha of the experts' activation");
  }
  return arch;
}

namespace {

// Of directories: experts' matrices are [k, n], rows of gate and up in turns.
constexpr std::array kGptOss{
    same("self_attn.sinks", "attention.sinks"),
    same("mlp.router", "ffn.router"),
    NameRule{.name = "mlp.experts.gate_up_proj",
             .pieces = {{{"ffn.experts.gate", PieceRows::every_second},
                         {"ffn.experts.up", PieceRows::every_second}}},
             .max_dims = 3},
    stack("mlp.experts.down_proj", "ffn.experts.down"),
};
constexpr auto kGptOssLayer = joined(hf::kProjections, kGptOss, hf::kHeadNorms<Transform::none>,
                                     hf::kTwoNorms<Transform::none>);
constexpr NameRules kRules{"layers.", hf::kModel<Transform::none>, kGptOssLayer, hf::kLeftOut};
constexpr HfNames kNames{.rules = &kRules};

constexpr std::array kDirectories{HfModel{.model_type = "gpt_oss",
                                          .names = &kNames,
                                          .head_dim = 64,
                                          .windows = HfWindows{.length = 128, .period = 2},
                                          .rope_theta = 150000,
                                          .norm_epsilon = 1e-5f,
                                          .experts = HfExperts{.n = "num_local_experts",
                                                               .usual_n = 128,
                                                               .usual_n_chosen = 4,
                                                               .dim = "intermediate_size"},
                                          .stacks = StackOrder::columns_first}};

// o200k: as Tekken, but for endings such as 's, and digits by threes.
constexpr std::string_view kO200kCuts[]{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s)"
    R"(|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s)"
    R"(|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S))"
    R"(|\s+)"};
constexpr PreTokenizer kO200k{.splits = kO200kCuts};
constexpr PreTokenizerName kPreTokenizers[]{{"gpt-4o", &kO200k}};

// Harmony: channels, of which the last is the answer. In commentary it says what it says of its calls.
constexpr std::array kThinking{ThinkingMarks{
    .signs = {"<|channel|>analysis"},
    .opening = "<|channel|>analysis<|message|>",
    .closing = "<|end|>",
    .answer_openings = {"<|start|>assistant<|channel|>commentary<|message|>",
                        "<|start|>assistant<|channel|>final<|message|>",
                        "<|channel|>commentary<|message|>", "<|channel|>final<|message|>"},
    .answer_closings = {"<|end|>", "<|return|>"},
    .further_openings = {"<|start|>assistant<|channel|>analysis<|message|>"}}};

}  // namespace

constinit const Family family{
    .architecture = "gpt-oss",
    .titles = {.with_experts = "gpt-oss"},
    .describe = describe,
    .traits = {.windows = true, .experts = true},
    .gguf_names = &gguf::kSeedNames,
    .written = {.without_truncation = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
    .thinking = kThinking,
};

}  // namespace akunu::models::gpt_oss
