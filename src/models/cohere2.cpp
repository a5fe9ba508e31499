// Command R7B and its successors: windows in three of four layers.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::cohere2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = command_r::describe(config);
  give_windows(arch, config, 4, 0);
  rotate_windows_only(arch, config);
  return arch;
}

namespace {

constexpr std::string_view kOwnKeys[]{"logit_scale"};
constexpr std::array kDirectories{
    HfModel{.model_type = "cohere2",
            .windows = HfWindows{.length = 4096, .period = 4, .needed = true, .rotate_alone = true},
            .norm_epsilon = 1e-5f,
            .epsilon_key = "layer_norm_eps",
            .logit_scale = 0.0625f,
            .own_keys = kOwnKeys}};
constexpr std::array kWithImages{ImageModel{"aya_vision", "cohere2"},
                                 ImageModel{"cohere2_vision", "cohere2"}};

// Command R7B and Command A.
constexpr std::array kThinking{ThinkingMarks{.signs = {"<|START_THINKING|>", "<|START_RESPONSE|>"},
                                             .opening = "<|START_THINKING|>",
                                             .closing = "<|END_THINKING|>",
                                             .answer_openings = {"<|START_RESPONSE|>"},
                                             .answer_closings = {"<|END_RESPONSE|>"}},
                               ThinkingMarks{.signs = {"<|START_THINKING|>"},
                                             .opening = "<|START_THINKING|>",
                                             .closing = "<|END_THINKING|>",
                                             .answer_openings = {"<|START_TEXT|>"},
                                             .answer_closings = {"<|END_TEXT|>"}}};

}  // namespace

constinit const Family family{
    .architecture = "cohere2",
    .titles = {.dense = "Command R7B"},
    .describe = describe,
    .traits = {.windows = true, .layer_norm = true, .logit_scale = true, .interleaves = true},
    .directories = kDirectories,
    .with_images = kWithImages,
    .thinking = kThinking,
};

}  // namespace akunu::models::cohere2
