// DeepSeek-V2 (2024), V3 and what has their shape: latent attention in llama's frame.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::deepseek2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_latents(arch, config);
  give_experts(arch, config, Scoring::softmax, false);
  return arch;
}

namespace {

constexpr HfExperts kOfV3{.n = "n_routed_experts",
                          .usual_n = 256,
                          .usual_n_chosen = 8,
                          .usual_dim = 2048,
                          .n_shared = "n_shared_experts",
                          .usual_n_shared = 1,
                          .n_leading_dense = "first_k_dense_replace",
                          .usual_leading_dense = 3,
                          .scoring = Scoring::sigmoid,
                          .has_groups = true,
                          .usual_groups = 8,
                          .usual_groups_chosen = 4,
                          .usual_scale = 2.5f,
                          .has_layers_ahead = true};
constexpr std::array kDirectories{
    HfModel{.model_type = "deepseek_v2",
            .reads_interleave = false,
            .latents = HfLatents{},
            .experts = HfExperts{.n = "n_routed_experts",
                                 .usual_n = 64,
                                 .usual_dim = 1407,
                                 .n_shared = "n_shared_experts",
                                 .usual_n_shared = 2,
                                 .n_leading_dense = "first_k_dense_replace",
                                 .normalises = false,
                                 .scoring = Scoring::softmax,
                                 .has_groups = true,
                                 .names_method = true}},
    HfModel{.model_type = "deepseek_v3", .latents = HfLatents{}, .experts = kOfV3},
    HfModel{.model_type = "kimi_k2", .latents = HfLatents{}, .experts = kOfV3}};

// Kimi K2. Chinese characters are words of their own, and no other word has any. The published expression takes them out
// of classes (`&&[^\p{Han}]`); here a class is what its complement leaves.
constexpr std::string_view kHan =
    "\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufa6d\ufa70-\ufad9\U00016fe2\U00016fe3\U00016ff0-\U00016ff6"
    "\U00020000-\U0002a6df\U0002a700-\U0002b81e\U0002b820-\U0002cead\U0002ceb0-\U0002ebe0"
    "\U0002ebf0-\U0002ee5d\U0002f800-\U0002fa1d\U00030000-\U0003134a\U00031350-\U00033479";
// A word of Chinese characters; or of capital letters and small ones, at least one of either.
constexpr std::string_view kChinese = "[";
constexpr std::string_view kCapitals = R"(]+|[^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C})";
constexpr std::string_view kThenSmall = R"(]*[^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C})";
constexpr std::string_view kOrCapitals =
    R"(]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C})";
constexpr std::string_view kThenAnySmall = R"(]+[^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C})";
constexpr std::string_view kOthers =
    R"(]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
constexpr std::string_view kKimiCuts[]{
    kJoinedText<kChinese, kHan, kCapitals, kHan, kThenSmall, kHan, kOrCapitals, kHan, kThenAnySmall,
                kHan, kOthers>};
constexpr PreTokenizer kKimi{.splits = kKimiCuts};
constexpr PreTokenizerName kPreTokenizers[]{{"kimi-k2", &kKimi}};

}  // namespace

constinit const Family family{
    .architecture = "deepseek2",
    .titles = {.with_experts = "DeepSeek-V2 and V3, Kimi K2"},
    .describe = describe,
    .traits = {.attention_scale = true, .experts = true, .interleaves = true, .latent = true},
    .written = {.always_with_experts = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::deepseek2
