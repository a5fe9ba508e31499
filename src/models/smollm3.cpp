// SmolLM3 (2025): llama whose every fourth layer has no rotary positions.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::smollm3 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_unrotated(arch, config, 4);
  return arch;
}

namespace {

constexpr std::array kDirectories{HfModel{.model_type = "smollm3",
                                          .windows = HfWindows{.asked = true},
                                          .rope_theta = 2000000,
                                          .has_unrotated_layers = true}};

}  // namespace

constinit const Family family{
    .architecture = "smollm3",
    .titles = {.dense = "SmolLM3"},
    .describe = describe,
    .traits = {.windows = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::smollm3
