// Qwen2 (2024): dimension i of a head rotates with i + half. Biases of Q, K and V are seen from the tensors.
#include "files/huggingface/images.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::qwen2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  give_images(arch, config);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "qwen2",
            .windows = HfWindows{.length = 4096, .first = 28, .asked = true}},
    HfModel{.model_type = "qwen2_vl_text",
            .windows = HfWindows{.length = 4096, .first = 80, .asked = true},
            .rope_theta = 1000000,
            .norm_epsilon = 1e-5f},
    HfModel{.model_type = "qwen2_5_vl_text",
            .windows = HfWindows{.length = 4096, .first = 80, .asked = true},
            .rope_theta = 1000000,
            .norm_epsilon = 1e-5f}};
constexpr auto kImageModel = joined(hf::kModel<Transform::none>, hf::kQwen2ImageModel);
constexpr auto kImageLayer = joined(hf::kLayer<Transform::none>, hf::kQwen2ImageLayer);
constexpr NameRules kImageRules{"layers.", kImageModel, kImageLayer, hf::kAlwaysLeftOut,
                                hf::kQwenImageLayers};
constexpr HfNames kImageNames{.rules = &kImageRules};
constexpr HfImages kImages{.read = read_qwen2_images, .names = &kImageNames};
constexpr std::array kWithImages{ImageModel{"internvl", "qwen2"},
                                 ImageModel{"llava_onevision", "qwen2"},
                                 ImageModel{"qwen2_vl", "qwen2_vl_text", true, &kImages},
                                 ImageModel{"qwen2_5_vl", "qwen2_5_vl_text", true}};

}  // namespace

constinit const Family family{
    .architecture = "qwen2",
    .titles = {.dense = "Qwen2", .images = "Qwen2-VL"},
    .describe = describe,
    .traits = {.windows = true},
    .directories = kDirectories,
    .with_images = kWithImages,
};

}  // namespace akunu::models::qwen2
