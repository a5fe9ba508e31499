// Llama (Touvron et al., 2023): a pre-norm transformer with grouped-query attention, rotary positions and a gated
// feed-forward network. Mistral is the same with windows, Mixtral (2024) with experts.
#include "files/huggingface/images.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::llama {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_experts(arch, config, Scoring::softmax, true);
  give_images(arch, config);
  return arch;
}

namespace {

constexpr std::array kDirectories{
    HfModel{.model_type = "llama"},
    HfModel{.model_type = "mistral", .windows = HfWindows{.length = 4096}},
    HfModel{.model_type = "ministral", .windows = HfWindows{.length = 4096}},
    HfModel{.model_type = "mixtral",
            .windows = HfWindows{},
            .rope_theta = 1000000,
            .norm_epsilon = 1e-5f,
            .experts = HfExperts{.n = "num_local_experts",
                                 .usual_n = 8,
                                 .usual_n_chosen = 2,
                                 .dim = "intermediate_size"}}};

// Idefics3 and SmolVLM: SigLIP in front, whose squares of patches one matrix projects.
constexpr std::array kProjector{same("multi_modal_projector.proj", "encoder.projection")};
constexpr auto kIdefics3Model = joined(hf::kModel<Transform::none>, hf::kSiglipModel, kProjector);
constexpr auto kIdefics3Layer = joined(hf::kLayer<Transform::none>, hf::kSiglipLayer);
constexpr auto kIdefics3LeftOut = joined(hf::kAlwaysLeftOut, hf::kSiglipLeftOut);
constexpr NameRules kIdefics3Rules{"layers.", kIdefics3Model, kIdefics3Layer, kIdefics3LeftOut,
                                   hf::kSiglipLayers};
constexpr HfNames kIdefics3Names{.rules = &kIdefics3Rules};
constexpr HfImages kIdefics3{.read = read_idefics3_images, .names = &kIdefics3Names};
constexpr std::array kWithImages{
    ImageModel{.model_type = "idefics3", .of_text = "llama", .images = &kIdefics3},
    ImageModel{"llava", "llama"}, ImageModel{"llava_next", "llama"},
    ImageModel{.model_type = "smolvlm", .of_text = "llama", .images = &kIdefics3},
    ImageModel{"mistral3", "mistral"}};

constexpr PreTokenizerName kPreTokenizers[]{
    {"llama3", &cuts::kLlama3}, {"llama-v3", &cuts::kLlama3}, {"falcon3", &cuts::kLlama3}};

}  // namespace

constinit const Family family{
    .architecture = "llama",
    .titles = {.dense = "Llama 1 to 3, Mistral, Ministral",
               .with_experts = "Mixtral",
               .images = "Idefics3, SmolVLM"},
    .describe = describe,
    .traits = {.windows = true, .experts = true},
    .written = {.rope_factors = true},
    .directories = kDirectories,
    .with_images = kWithImages,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::llama
