// Phi-3 (2024): Q, K and V in one matrix, gate and up in another; the names say how they are cut.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::phi3 {

ArchDescriptor describe(const ModelConfig& config) { return decoder_of_halves(config); }

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "phi3",
                                          .windows = HfWindows{},
                                          .original_context = 4096,
                                          .norm_epsilon = 1e-5f,
                                          .has_long_rope = true}};
constexpr std::string_view kJoined[]{"attn_qkv", "ffn_up"};

}  // namespace

constinit const Family family{
    .architecture = "phi3",
    .titles = {.dense = "Phi-3 and Phi-4"},
    .describe = describe,
    .traits = {.windows = true},
    .written = {.rope_factors = true, .joined = kJoined},
    .directories = kDirectories,
};

}  // namespace akunu::models::phi3
