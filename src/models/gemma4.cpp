// Gemma 4 (2026): Gemma 3 whose scores are not scaled, with norms of values too. Layers that see
// everything have heads of their own length, of which a part rotates: the file's factors say which.
// The small models share keys and values, and have embeddings for each layer; one has experts beside
// the network of each layer.
#include <cmath>

#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::gemma4 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = gemma3::describe(config);
  give_soft_caps(arch, config, 0.0f, 30.0f);
  arch.per_layer_dim = config.per_layer_dim;
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    Attention& attention = *arch.layers[i].attention();
    attention.scale = 1;
    attention.value_norms = true;
    attention.values_are_keys = config.layers[i].values_are_keys;
    attention.rope.has_model_factors = attention.window == 0;
  }
  share_keys(arch, config.n_shared_kv_layers);
  give_experts(arch, config, Scoring::softmax, true);
  for (FeedForward& network : networks_of(arch)) {
    if (!network.experts) continue;
    network.experts->beside_dense = true;
    network.experts->router_scale = 1 / std::sqrt(static_cast<float>(config.dim));
  }
  return arch;
}

namespace {

constexpr std::string_view kOwnKeys[]{"num_experts", "use_bidirectional_attention"};
constexpr std::array kDirectories{
    HfModel{.model_type = "gemma4_text",
            .names = &hf::kGemma4Names,
            .n_heads = 8,
            .n_kv_heads = 4,
            .head_dim = 256,
            .vocab_size = 262144,
            .context_length = 131072,
            .windows = HfWindows{.length = 512, .period = 6, .needed = true},
            .activation = "gelu_pytorch_tanh",
            .shapes = HfLayerShapes{.per_layer_dim = 256, .has_experts = true},
            .own_keys = kOwnKeys},
    HfModel{.model_type = "gemma4_unified_text",
            .names = &hf::kGemma4Names,
            .n_heads = 8,
            .n_kv_heads = 4,
            .head_dim = 256,
            .vocab_size = 262144,
            .context_length = 262144,
            .windows = HfWindows{.length = 1024, .period = 6, .needed = true},
            .activation = "gelu_pytorch_tanh",
            .shapes = HfLayerShapes{},
            .own_keys = kOwnKeys}};
constexpr std::array kWithImages{ImageModel{"gemma4", "gemma4_text"},
                                 ImageModel{"gemma4_unified", "gemma4_unified_text"}};

constexpr std::array kThinking{ThinkingMarks{.signs = {"<|channel>", "<channel|>"},
                                             .opening = "<|channel>thought\n",
                                             .closing = "<channel|>"}};

}  // namespace

constinit const Family family{
    .architecture = "gemma4",
    .titles = {.dense = "Gemma 4", .with_experts = "Gemma 4"},
    .describe = describe,
    .traits = {.windows = true, .soft_caps = true, .experts = true, .layer_shapes = true},
    .written = {.rope_factors = true},
    .directories = kDirectories,
    .with_images = kWithImages,
    .thinking = kThinking,
};

}  // namespace akunu::models::gemma4
