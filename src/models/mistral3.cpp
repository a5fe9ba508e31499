// Ministral 3 (2025): llama whose queries grow with the logarithm of their positions.
#include "core/error.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::mistral3 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  if (config.rope.query_growth == 0) return arch;
  require_positive(config.rope.query_growth, "growth of queries");
  require(config.rope.query_growth_length, "length that queries grow by", config);
  for (const Attention& attention : attention_of(arch))
    if (attention.rope.dim != attention.head_dim)
      throw UnsupportedModelError("queries that grow need all of a head to rotate");
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{
    .model_type = "ministral3", .head_dim = 128, .windows = HfWindows{}, .norm_epsilon = 1e-5f}};

// Words begin a new piece where small letters are followed by capital ones.
constexpr std::string_view kTekkenCuts[]{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr PreTokenizer kTekken{.splits = kTekkenCuts, .ignore_merges = true, .add_bos = true};
constexpr PreTokenizerName kPreTokenizers[]{{"tekken", &kTekken}};

// Magistral and Ministral 3 Reasoning.
constexpr std::array kThinking{
    ThinkingMarks{.signs = {"[THINK]"}, .opening = "[THINK]", .closing = "[/THINK]"}};

}  // namespace

constinit const Family family{
    .architecture = "mistral3",
    .titles = {.dense = "Ministral 3"},
    .describe = describe,
    .traits = {.windows = true, .attention_scale = true, .query_growth = true},
    .written = {.attention_scale = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
    .thinking = kThinking,
};

}  // namespace akunu::models::mistral3
