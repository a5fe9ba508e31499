// Gemma 3n (2025): Gemma 4's layers of one length of heads, in a residual of several streams, with a
// branch beside attention and gates of which only the largest numbers count.
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::gemma3n {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = gemma3::describe(config);
  give_soft_caps(arch, config, 0.0f, 30.0f);
  arch.per_layer_dim = config.per_layer_dim;
  arch.streams = config.streams;
  for (Attention& attention : attention_of(arch)) {
    attention.scale = 1;
    attention.value_norms = true;
    attention.has_branch = true;
  }
  for (size_t i = 0; i < arch.layers.size(); ++i)
    arch.layers[i].feed_forward->gate_cut = config.layers[i].gate_cut;
  share_keys(arch, config.n_shared_kv_layers);
  return arch;
}

namespace {

// Of directories: Gemma 4's, with streams of the residual.
constexpr std::array kStreams{
    same("laurel.post_laurel_norm", "branch.post_norm"),
    same("altup.router_norm", "streams.router_norm"),
    numbers("altup.modality_router", "streams.router"),
    numbers("altup.prediction_coefs", "streams.predict"),
    numbers("altup.correction_coefs", "streams.correct"),
    same("altup.correct_output_scale", "streams.scale"),
};
constexpr std::array kStreamsModel{
    same("altup_projections.0", "streams.in.0"),
    same("altup_projections.1", "streams.in.1"),
    same("altup_projections.2", "streams.in.2"),
    same("altup_unembed_projections.0", "streams.out.0"),
    same("altup_unembed_projections.1", "streams.out.1"),
    same("altup_unembed_projections.2", "streams.out.2"),
};
constexpr auto kGemma3nModel = joined(hf::kGemma4Model, kStreamsModel);
constexpr auto kGemma3nLayer = joined(hf::kGemma4Layer, kStreams);
constexpr NameRules kRules{"layers.", kGemma3nModel, kGemma3nLayer, hf::kLeftOut};
constexpr HfNames kNames{.rules = &kRules};

constexpr std::array kDirectories{
    HfModel{.model_type = "gemma3n_text",
            .names = &kNames,
            .n_heads = 8,
            .n_kv_heads = 2,
            .head_dim = 256,
            .vocab_size = 262400,
            .context_length = 32768,
            .windows = HfWindows{.length = 512, .period = 5, .needed = true},
            .rope_theta = 1000000,
            .rope_theta_windowed = 10000,
            .activation = "gelu_pytorch_tanh"}};
constexpr std::array kWithImages{ImageModel{"gemma3n", "gemma3n_text"}};

}  // namespace

constinit const Family family{
    .architecture = "gemma3n",
    .titles = {.dense = "Gemma 3n"},
    .describe = describe,
    .traits = {.windows = true, .soft_caps = true, .layer_shapes = true, .streams = true},
    .directories = kDirectories,
    .with_images = kWithImages,
};

}  // namespace akunu::models::gemma3n
