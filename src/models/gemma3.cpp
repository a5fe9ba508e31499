// Gemma 3 (2025): norms per head of Q and K instead of the caps; windows in five of six layers,
// whose positions turn faster and are never scaled. A file without a window has none anywhere.
#include "files/huggingface/images.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::gemma3 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = gemma::describe(config);
  give_windows(arch, config, 6, 0);
  give_windows_own_rope(arch, config, 10000.0f);
  give_attention_scale(arch, config, 62);
  give_soft_caps(arch, config, 0.0f, 0.0f);
  give_head_norms(arch, HeadNorms::each);
  arch.post_norms = true;
  give_images(arch, config);
  return arch;
}

namespace {

constexpr std::array kProjector{
    same("multi_modal_projector.mm_soft_emb_norm", "encoder.projection_norm", Transform::add_one),
    same("multi_modal_projector.mm_input_projection", "encoder.projection"),
};
constexpr auto kWithImagesModel =
    joined(hf::kModel<Transform::add_one>, hf::kSiglipModel, kProjector);
constexpr auto kWithImagesLayer = joined(hf::kLaterGemmaLayer, hf::kSiglipLayer);
constexpr auto kWithImagesLeftOut = joined(hf::kAlwaysLeftOut, hf::kSiglipLeftOut);
constexpr NameRules kWithImagesRules{"layers.", kWithImagesModel, kWithImagesLayer,
                                     kWithImagesLeftOut, hf::kSiglipLayers};
constexpr HfNames kNamesWithImages{.rules = &kWithImagesRules};
constexpr HfImages kImages{.read = read_gemma3_images, .names = &kNamesWithImages};

constexpr std::string_view kOwnKeys[]{"use_bidirectional_attention"};
constexpr std::array kDirectories{HfModel{.model_type = "gemma3_text",
                                          .names = &hf::kLaterGemmaNames,
                                          .n_heads = 8,
                                          .n_kv_heads = 4,
                                          .head_dim = 256,
                                          .vocab_size = 262208,
                                          .context_length = 131072,
                                          .windows = HfWindows{.length = 4096, .period = 6},
                                          .scale_dim = 256,
                                          .rope_theta = 1000000,
                                          .rope_theta_windowed = 10000,
                                          .activation = "gelu_pytorch_tanh",
                                          .means_gelu_tanh = true,
                                          .own_keys = kOwnKeys}};
constexpr std::array kWithImages{
    ImageModel{.model_type = "gemma3", .of_text = "gemma3_text", .images = &kImages}};

}  // namespace

constinit const Family family{
    .architecture = "gemma3",
    .titles = {.dense = "Gemma 3", .images = "Gemma 3"},
    .describe = describe,
    .traits = {.windows = true, .soft_caps = true, .attention_scale = true},
    .directories = kDirectories,
    .with_images = kWithImages,
};

}  // namespace akunu::models::gemma3
