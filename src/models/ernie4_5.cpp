// ERNIE 4.5 (2025): llama.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::ernie4_5 {

ArchDescriptor describe(const ModelConfig& config) { return decoder(config); }

namespace {

constexpr std::array kDirectories{HfModel{
    .model_type = "ernie4_5", .head_dim = 128, .rope_theta = 500000, .norm_epsilon = 1e-5f}};

}  // namespace

constinit const Family family{
    .architecture = "ernie4_5",
    .titles = {.dense = "ERNIE 4.5"},
    .describe = describe,
    .traits = {.interleaves = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::ernie4_5
