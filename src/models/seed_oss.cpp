// Seed-OSS (2025): qwen2 by other names.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::seed_oss {

ArchDescriptor describe(const ModelConfig& config) { return decoder_of_halves(config); }

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "seed_oss", .head_dim = 128}};

}  // namespace

constinit const Family family{
    .architecture = "seed_oss",
    .titles = {.dense = "Seed-OSS"},
    .describe = describe,
    .gguf_names = &gguf::kSeedNames,
    .directories = kDirectories,
};

}  // namespace akunu::models::seed_oss
