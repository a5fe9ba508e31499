// Nemotron-H (2025): each layer is one thing alone, a scan, attention without positions, or a feed-forward
// network, and has one norm.
#include "files/huggingface/config.h"
#include "files/huggingface/scan_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::nemotron_h {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  rotate_as(arch, RopeStyle::none);
  for (LayerDescriptor& layer : arch.layers) {
    const uint32_t dim = layer.feed_forward->dim;
    if (dim == 0)
      layer.feed_forward.reset();
    else
      layer = {.mixer = NoMixer{},
               .feed_forward = FeedForward{
                   .is_gated = false, .activation = Activation::relu_squared, .dim = dim}};
  }
  give_scans(arch, config);
  return arch;
}

namespace {

constexpr std::string_view kOwnKeys[]{"n_routed_experts"};
constexpr std::array kDirectories{
    HfModel{.model_type = "nemotron_h",
            .names = &hf::kMixersNames,
            .n_heads = 32,
            .n_kv_heads = 8,
            .head_dim = 128,
            .vocab_size = 131072,
            .context_length = 4096,
            .norm_epsilon = 1e-5f,
            .epsilon_key = "layer_norm_epsilon",
            .read_layers = [](ConfigObject& config,
                              HfConfig& result) { read_hf_mixers(config, result.model); },
            .own_keys = kOwnKeys,
            .count_layers = count_hf_mixers}};

}  // namespace

constinit const Family family{
    .architecture = "nemotron_h",
    .titles = {.recurrent = "Nemotron-H"},
    .describe = describe,
    .traits = {.rotates = false, .scans = true, .alternates = true},
    .written = {.both_epsilons = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::nemotron_h
