#include "models/common/pre_tokenizers.h"

#include "models/registry.h"

namespace akunu {
namespace cuts {
namespace {

constexpr std::string_view kDefaultCuts[]{
    R"([\p{P}\$\+<=>\^~\|]+)",
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", R"(\p{N}+)",
    R"([0-9][0-9][0-9])"};

constexpr std::string_view kLlama3Cuts[]{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::string_view kQwen2Cuts[]{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::string_view kDeepseek3Cuts[]{
    R"(\p{N}{1,3})", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"([!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
    R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S))"
    R"(|\s+)"};

constexpr std::string_view kGpt2Cuts[]{
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};

constexpr std::string_view kFalconCuts[]{
    R"([\p{P}\$\+<=>\^~\|`]+)",
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"([0-9][0-9][0-9])"};

constexpr std::string_view kStarcoderCuts[]{
    R"(\p{N})", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};

}  // namespace

constinit const PreTokenizer kDefault{.splits = kDefaultCuts};
constinit const PreTokenizer kLlama3{.splits = kLlama3Cuts, .ignore_merges = true, .add_bos = true};
constinit const PreTokenizer kDbrx{.splits = kLlama3Cuts};
constinit const PreTokenizer kQwen2{.splits = kQwen2Cuts};
constinit const PreTokenizer kDeepseek3{.splits = kDeepseek3Cuts};
constinit const PreTokenizer kGpt2{.splits = kGpt2Cuts};
constinit const PreTokenizer kRoberta{.splits = kGpt2Cuts, .add_sep = true};
constinit const PreTokenizer kFalcon{.splits = kFalconCuts};
constinit const PreTokenizer kStarcoder{.splits = kStarcoderCuts};

}  // namespace cuts

namespace {

// Names that no family's file has. A byte-level vocabulary without the key `tokenizer.ggml.pre` gets the first one, as in
// llama.cpp. For each of `cuts`, the name that akunu writes into files comes first.
constexpr PreTokenizerName kNames[]{
    {"default", &cuts::kDefault},
    {"llama-bpe", &cuts::kLlama3},
    {"dbrx", &cuts::kDbrx},
    {"smaug-bpe", &cuts::kDbrx},
    {"qwen2", &cuts::kQwen2},
    {"deepseek-r1-qwen", &cuts::kQwen2},
    {"stablelm2", &cuts::kQwen2},
    {"megrez", &cuts::kQwen2},
    {"deepseek-v3", &cuts::kDeepseek3},
    {"gpt-2", &cuts::kGpt2},
    {"mpt", &cuts::kGpt2},
    {"roberta-bpe", &cuts::kRoberta},
    {"falcon", &cuts::kFalcon},
    {"starcoder", &cuts::kStarcoder},
    {"refact", &cuts::kStarcoder},
    {"smollm", &cuts::kStarcoder},
    {"exaone", &cuts::kStarcoder},
};

}  // namespace

std::vector<PreTokenizerName> pre_tokenizers() {
  std::vector<PreTokenizerName> names(std::begin(kNames), std::end(kNames));
  for (const Family* family : families())
    names.insert(names.end(), family->pre_tokenizers.begin(), family->pre_tokenizers.end());
  return names;
}

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizerName& known : pre_tokenizers())
    if (known.name == name) return known.cuts;
  return nullptr;
}

}  // namespace akunu
