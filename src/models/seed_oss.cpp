// Seed-OSS (2025): qwen2 by other names.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::seed_oss {

ArchDescriptor describe(const ModelConfig& config) { return decoder_of_halves(config); }

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "seed_oss", .head_dim = 128}};

// A run of punctuation does not take the line's end with it.
constexpr std::string_view kSeedCuts[]{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1})"
    R"(| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr PreTokenizer kSeed{.splits = kSeedCuts};
constexpr PreTokenizerName kPreTokenizers[]{{"seed-coder", &kSeed}};

constexpr std::array kThinking{ThinkingMarks{
    .signs = {"<seed:think>"}, .opening = "<seed:think>", .closing = "</seed:think>"}};

}  // namespace

constinit const Family family{
    .architecture = "seed_oss",
    .titles = {.dense = "Seed-OSS"},
    .describe = describe,
    .gguf_names = &gguf::kSeedNames,
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
    .thinking = kThinking,
};

}  // namespace akunu::models::seed_oss
